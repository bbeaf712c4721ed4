package ask_test

import (
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
)

// withdrawable is a message that can be withdrawn.
type withdrawable string

func (w withdrawable) Withdrawal() any { return "not " + string(w) }

func TestWithdrawal(t *testing.T) {
	for name, c := range map[string]struct {
		use       func(f *ask.Future[int], to *inbox)
		withdrawn bool
	}{
		"pending":  {func(f *ask.Future[int], _ *inbox) { f.Cancel(); f.Cancel() }, true},
		"answered": {func(f *ask.Future[int], to *inbox) { (*to)[0].(*ask.Call).From.Tell(1); f.Cancel() }, true},
		"taken":    {func(f *ask.Future[int], to *inbox) { (*to)[0].(*ask.Call).From.Tell(1); f.Result(); f.Cancel() }, false},
		"refused":  {func(f *ask.Future[int], to *inbox) { (*to)[0].(*ask.Call).From.Tell(ask.ErrCancelled); f.Cancel() }, false},
	} {
		var to inbox
		c.use(ask.Ask[int](&to, withdrawable("this")), &to)
		switch {
		case !c.withdrawn && len(to) == 1:
		case c.withdrawn && len(to) == 2 && to[1].(*ask.Call).Message == "not this" && to[1].(*ask.Call).From == to[0].(*ask.Call).From:
		default:
			t.Errorf("%s: the recipient has received %v", name, to)
		}
	}
}

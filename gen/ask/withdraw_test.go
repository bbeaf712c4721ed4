package ask_test

import (
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
)

// withdrawable is a message that can be withdrawn.
type withdrawable string

func (w withdrawable) Withdrawal() any { return "not " + string(w) }

// calls is a recipient that records its messages.
type calls []*ask.Call

func (c *calls) Tell(msg any) { *c = append(*c, msg.(*ask.Call)) }

func TestWithdrawal(t *testing.T) {
	for name, c := range map[string]struct {
		use       func(f *ask.Future[int], to *calls)
		withdrawn bool
	}{
		"pending":  {func(f *ask.Future[int], _ *calls) { f.Cancel(); f.Cancel() }, true},
		"answered": {func(f *ask.Future[int], to *calls) { (*to)[0].From.Tell(1); f.Cancel() }, true},
		"taken":    {func(f *ask.Future[int], to *calls) { (*to)[0].From.Tell(1); f.Result(); f.Cancel() }, false},
		"refused":  {func(f *ask.Future[int], to *calls) { (*to)[0].From.Tell(ask.ErrCancelled); f.Cancel() }, false},
	} {
		var to calls
		c.use(ask.Ask[int](&to, withdrawable("this")), &to)
		switch {
		case !c.withdrawn && len(to) == 1:
		case c.withdrawn && len(to) == 2 && to[1].Message == "not this" && to[1].From == to[0].From:
		default:
			t.Errorf("%s: the recipient was told %v", name, to)
		}
	}
}

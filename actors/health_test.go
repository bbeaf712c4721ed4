package actors_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// The error of Health has the reason, and since when there is no answer.
func TestHealth(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		must(v, locks.Health(within(v)))
		g := lock(v, mu)
		must(v, locks.Health(within(v)))
		unlock(v, g)
		v.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := locks.Health(ctx)
		cancel()
		is(v, err, context.DeadlineExceeded)
		is(v, err, actors.ErrSuspended)
		since := time.Now().Add(-time.Second).Format("15:04:05")
		if !strings.Contains(err.Error(), since) {
			v.Errorf("%v lacks %s", err, since)
		}
		<-time.After(2 * session)
		err = locks.Health(within(v))
		is(v, err, actors.ErrSessionLost)
		for _, once := range []string{"no answer", "is lost", "LOST", "deadline"} {
			if n := strings.Count(err.Error(), once); n > 1 || n == 0 && once != "LOST" {
				v.Errorf("%q %d times: %v", once, n, err)
			}
		}
		v.Resume()
		waitState(v, locks, messages.SessionState_CONNECTED)
		must(v, locks.Health(within(v)))
		//lint:ignore SA1012 that is the test
		is(v, locks.Health(nil), actors.ErrInvalid)
		must(v, locks.Close())
		is(v, locks.Health(within(v)), actors.ErrClosed)
	})
}

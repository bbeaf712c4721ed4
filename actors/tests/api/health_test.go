package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// The error of Health has the reason, and since when there is no answer.
func TestHealth(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		locktest.Must(v, locks.Health(locktest.Within(v)))
		g := locktest.Lock(v, mu)
		locktest.Must(v, locks.Health(locktest.Within(v)))
		locktest.Unlock(v, g)
		v.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := locks.Health(ctx)
		cancel()
		locktest.Is(v, err, context.DeadlineExceeded)
		locktest.Is(v, err, actors.ErrSuspended)
		since := time.Now().Add(-time.Second).Format("15:04:05")
		if !strings.Contains(err.Error(), since) {
			v.Errorf("%v lacks %s", err, since)
		}
		<-time.After(2 * locktest.SessionTimeout)
		err = locks.Health(locktest.Within(v))
		locktest.Is(v, err, actors.ErrSessionLost)
		for _, once := range []string{"no answer", "is lost", "LOST", "deadline"} {
			if n := strings.Count(err.Error(), once); n > 1 || n == 0 && once != "LOST" {
				v.Errorf("%q %d times: %v", once, n, err)
			}
		}
		v.Resume()
		locktest.WaitState(v, locks, messages.SessionState_CONNECTED)
		locktest.Must(v, locks.Health(locktest.Within(v)))
		//lint:ignore SA1012 that is the test
		locktest.Is(v, locks.Health(nil), actors.ErrInvalid)
		locktest.Must(v, locks.Close())
		locktest.Is(v, locks.Health(locktest.Within(v)), actors.ErrClosed)
	})
}

package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A request that waits for some seconds behind a grant of its own process may be nested in the
// work of that grant: the log says so once for a path, and the error of WithTimeout each time.
func TestNestedRequest(t *testing.T) {
	t.Parallel()
	const hint = "WithOwner"
	for name, lock := range map[string]func(*actors.Locks) locktest.Handle{
		"mutex":       func(l *actors.Locks) locktest.Handle { return l.Mutex("/lock") },
		"local queue": func(l *actors.Locks) locktest.Handle { return l.Mutex("/lock", locktest.ShortLinger) },
		"write":       func(l *actors.Locks) locktest.Handle { return l.RWMutex("/lock").Write() },
		"semaphore":   func(l *actors.Locks) locktest.Handle { return l.Semaphore("/lock", 1) },
		"multi-lock":  func(l *actors.Locks) locktest.Handle { return l.MultiLock(l.Mutex("/lock"), l.Mutex("/other")) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				var log locktest.Log
				mu, other := lock(v.Locks(log.Config)), lock(v.Locks(log.Config))
				expire := func(mu locktest.Handle, wait time.Duration, hinted bool, options ...actors.Option) {
					t.Helper()
					_, err := mu.Lock(locktest.Within(v), append(options, actors.WithTimeout(wait))...)
					locktest.Is(v, err, actors.ErrTimedOut)
					if found := err != nil && strings.Contains(err.Error(), hint); found != hinted {
						t.Errorf("hint %v: %v", found, err)
					}
				}
				g := locktest.Lock(v, mu)
				expire(mu, time.Second, false)                                 // too short to say anything
				expire(mu, 10*time.Second, true)                               // nested, perhaps
				expire(mu, 10*time.Second, false, actors.WithOwner("another")) // the program knows of owners
				expire(other, 10*time.Second, false)                           // waits for another process
				waiting := mu.Acquire(context.Background())
				<-time.After(10 * time.Second)
				locktest.Pending(v, waiting)
				if lines := log.With(hint); len(lines) != 1 {
					t.Errorf("%d lines: %q", len(lines), lines)
				}
				locktest.Unlock(v, g)
				g = locktest.Result(v, waiting)
				locktest.Unlock(v, g)
			})
		})
	}
}

// A request that waits for long while others of its process come and go is not nested.
func TestNestedRequestInAQueue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		var log locktest.Log
		mu := v.Locks(log.Config).Mutex("/lock")
		g := locktest.Lock(v, mu)
		var all []*actors.Future[*actors.Grant]
		for range 10 {

			all = append(all, mu.Acquire(context.Background()))
		}
		for _, f := range all {
			<-time.After(2 * time.Second)
			locktest.Unlock(v, g)
			g = locktest.Result(v, f)
		}
		locktest.Unlock(v, g)
		if lines := log.With("WithOwner"); len(lines) > 0 {
			t.Errorf("%q", lines)
		}
	})
}

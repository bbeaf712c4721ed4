package recipes

import (
	"context"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// First returns one grant, and cancels or releases the other requests.
func TestFirst(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		all := []*actors.Mutex{locks.Mutex(b.LockPath + "/1"), locks.Mutex(b.LockPath + "/2"), locks.Mutex(b.LockPath + "/3")}
		acquire := func(options ...actors.Option) (futures []*actors.Future[*actors.Grant]) {
			for _, mu := range all {
				futures = append(futures, mu.Acquire(locktest.Within(b), options...))
			}
			return futures
		}
		first, second := locktest.Lock(b, all[0]), locktest.Lock(b, all[1])
		g, err := actors.First(locktest.Within(b), acquire()...)
		locktest.Must(b, err)
		if g.Path() != all[2].Path() {
			b.Errorf("got %s", g.Path())
		}
		_, err = actors.First(locktest.Within(b), acquire(actors.Try())...)
		locktest.Is(b, err, actors.ErrNotAcquired)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(locktest.ErrEnough)
		if _, err = actors.First(ctx, acquire()...); err != locktest.ErrEnough {
			b.Errorf("got %v, want the cause of the context", err)
		}
		locktest.Unlock(b, first)
		locktest.Unlock(b, second)
		locktest.Unlock(b, g)
		futures := acquire()
		for _, f := range futures {
			<-f.Done()
		}
		g, err = actors.First(locktest.Within(b), futures...)
		locktest.Must(b, err)
		if g.Path() != all[0].Path() {
			b.Errorf("got %s of all", g.Path())
		}
		locktest.Unlock(b, locktest.Lock(b, all[1]))
		locktest.Unlock(b, locktest.Lock(b, all[2]))
		locktest.Unlock(b, g)
		f := all[0].Acquire(locktest.Within(b))
		_, err = actors.First(locktest.Within(b), f, nil)
		locktest.Is(b, err, actors.ErrInvalid)
		_, err = f.Result()
		locktest.Is(b, err, actors.ErrCancelled)
		_, err = actors.First(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		//lint:ignore SA1012 that is the test
		_, err = actors.First(nil, all[0].Acquire(locktest.Within(b)))
		locktest.Is(b, err, actors.ErrInvalid)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { s := locks.Stats(); return s.Held+s.Waiting == 0 }, "no request waits or holds")
	})
}

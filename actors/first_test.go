package actors_test

import (
	"context"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// First returns one grant, and cancels or releases the other requests.
func TestFirst(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		all := []*actors.Mutex{locks.Mutex(b.path + "/1"), locks.Mutex(b.path + "/2"), locks.Mutex(b.path + "/3")}
		acquire := func(options ...actors.Option) (futures []*actors.Future[*actors.Grant]) {
			for _, mu := range all {
				futures = append(futures, mu.Acquire(within(b), options...))
			}
			return futures
		}
		first, second := lock(b, all[0]), lock(b, all[1])
		g, err := actors.First(within(b), acquire()...)
		must(b, err)
		if g.Path() != all[2].Path() {
			b.Errorf("got %s", g.Path())
		}
		_, err = actors.First(within(b), acquire(actors.Try())...)
		is(b, err, actors.ErrNotAcquired)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errEnough)
		if _, err = actors.First(ctx, acquire()...); err != errEnough {
			b.Errorf("got %v, want the cause of the context", err)
		}
		unlock(b, first)
		unlock(b, second)
		unlock(b, g)
		futures := acquire()
		for _, f := range futures {
			<-f.Done()
		}
		g, err = actors.First(within(b), futures...)
		must(b, err)
		if g.Path() != all[0].Path() {
			b.Errorf("got %s of all", g.Path())
		}
		unlock(b, lock(b, all[1]))
		unlock(b, lock(b, all[2]))
		unlock(b, g)
		f := all[0].Acquire(within(b))
		_, err = actors.First(within(b), f, nil)
		is(b, err, actors.ErrInvalid)
		_, err = f.Result()
		is(b, err, actors.ErrCancelled)
		_, err = actors.First(within(b))
		is(b, err, actors.ErrInvalid)
		//lint:ignore SA1012 that is the test
		_, err = actors.First(nil, all[0].Acquire(within(b)))
		is(b, err, actors.ErrInvalid)
		zktest.Eventually(b, timeLimit, func() bool { s := locks.Stats(); return s.Held+s.Waiting == 0 }, "no request waits or holds")
	})
}

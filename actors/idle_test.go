package actors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestIdleActorRetires(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks(idle(time.Minute))
		mu := locks.Mutex(v.path)
		g := lock(v, mu)
		<-time.After(time.Hour)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors while a lock is held", n)
		}
		unlock(v, g)
		<-time.After(59 * time.Second)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors after 59 s", n)
		}
		<-time.After(5 * time.Second)
		if n := len(actors.Paths(locks)); n != 0 {
			v.Errorf("%d actors after more than a minute", n)
		}
		// The handle works as before.
		h := lock(v, mu)
		expectIncreasing(v, g.Token(), h.Token())
		is(v, g.Unlock(within(v)), actors.ErrNotHeld)
		if h.Err() != nil {
			v.Error(h.Err())
		}
		unlock(v, h)
		v.clean()
	})
}

// Goroutines request a lock whose actor ends whenever it is idle.
func TestAcquireRacesRetirement(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks(idle(time.Microsecond))
		var wg sync.WaitGroup
		count := 0
		const goroutines, rounds = 8, 40
		for range goroutines {
			mu := locks.Mutex(b.path)
			wg.Go(func() {
				for i := range rounds {
					g, err := mu.Lock(within(b))
					if err != nil {
						b.Error(err)
						return
					}
					count++
					if err := g.Unlock(within(b)); err != nil {
						b.Error(err)
					}
					if f := mu.Acquire(within(b)); i%2 == 0 {
						f.Cancel()
					} else if g, err := f.Result(); err == nil {
						g.Release()
					}
				}
			})
		}
		wg.Wait()
		if count != goroutines*rounds {
			b.Errorf("%d grants counted %d", goroutines*rounds, count)
		}
		zktest.Eventually(b, timeLimit, func() bool { return len(actors.Paths(locks)) == 0 }, "the actor ends")
	})
}

// One goroutine acquires after pauses about as long as the IdleTimeout.
func TestAcquireAtRetirement(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		locks := b.locks(idle(time.Millisecond))
		mu := locks.Mutex(b.path)
		for i := range 300 {
			unlock(b, lock(b, mu))
			<-time.After(time.Duration(i%40) * 100 * time.Microsecond)
		}
	})
}

// A waiting request keeps the actor from ending.
func TestWaiterKeepsActor(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		other := v.mutex()
		locks := v.locks(idle(time.Second))
		mu := locks.Mutex(v.path)
		g := lock(v, other)
		f := mu.Acquire(context.Background(), actors.WithTimeout(time.Hour))
		<-time.After(30 * time.Minute)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors", n)
		}
		<-time.After(31 * time.Minute)
		is(v, failure(v, f), actors.ErrTimedOut)
		<-time.After(time.Minute)
		if n := len(actors.Paths(locks)); n != 0 {
			v.Errorf("%d actors", n)
		}
		unlock(v, g)
		v.clean()
	})
}

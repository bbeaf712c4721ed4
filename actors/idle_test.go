package actors_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestIdleActorRetires(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks(locktest.IdleTimeout(time.Minute))
		mu := locks.Mutex(v.LockPath)
		g := locktest.Lock(v, mu)
		<-time.After(time.Hour)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors while a lock is held", n)
		}
		locktest.Unlock(v, g)
		<-time.After(59 * time.Second)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors after 59 s", n)
		}
		<-time.After(5 * time.Second)
		if n := len(actors.Paths(locks)); n != 0 {
			v.Errorf("%d actors after more than a minute", n)
		}
		// The handle works as before.
		h := locktest.Lock(v, mu)
		locktest.ExpectIncreasing(v, g.Token(), h.Token())
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrNotHeld)
		if h.Err() != nil {
			v.Error(h.Err())
		}
		locktest.Unlock(v, h)
		v.Clean()
	})
}

// The actors of each recipe retire, and the local queues' with the nodes that they keep.
func TestIdleActorsOfEachRecipeRetire(t *testing.T) {
	lingering := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute})
	all := append(slices.Clone(locktest.Recipes),
		locktest.Recipe{Name: "lingering mutex", At: func(l *actors.Locks, path string) locktest.Handle { return l.Mutex(path, lingering) }},
		locktest.Recipe{Name: "lingering read", At: func(l *actors.Locks, path string) locktest.Handle { return l.RWMutex(path, lingering).Read() }},
		locktest.Recipe{Name: "lingering write", At: func(l *actors.Locks, path string) locktest.Handle { return l.RWMutex(path, lingering).Write() }})
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				locks := v.Locks(locktest.IdleTimeout(time.Second))
				for range 2 {
					locktest.Unlock(v, locktest.Lock(v, r.At(locks, v.LockPath), r.Options...))
					<-time.After(2 * time.Minute)
					if paths := actors.Paths(locks); len(paths) != 0 {
						v.Errorf("there are actors of %v", paths)
					}
					v.Clean()
				}
			})
		})
	}
}

// Goroutines request a lock whose actor ends whenever it is idle.
func TestAcquireRacesRetirement(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(locktest.IdleTimeout(time.Microsecond))
		var wg sync.WaitGroup
		count := 0
		const goroutines, rounds = 8, 40
		for range goroutines {
			mu := locks.Mutex(b.LockPath)
			wg.Go(func() {
				for i := range rounds {
					g, err := mu.Lock(locktest.Within(b))
					if err != nil {
						b.Error(err)
						return
					}
					count++
					if err := g.Unlock(locktest.Within(b)); err != nil {
						b.Error(err)
					}
					if f := mu.Acquire(locktest.Within(b)); i%2 == 0 {
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
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(actors.Paths(locks)) == 0 }, "the actor ends")
	})
}

// One goroutine acquires after pauses about as long as the IdleTimeout.
func TestAcquireAtRetirement(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks(locktest.IdleTimeout(time.Millisecond))
		mu := locks.Mutex(b.LockPath)
		for i := range 300 {
			locktest.Unlock(b, locktest.Lock(b, mu))
			<-time.After(time.Duration(i%40) * 100 * time.Microsecond)
		}
	})
}

// A waiting request keeps the actor from ending.
func TestWaiterKeepsActor(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		other := v.Mutex()
		locks := v.Locks(locktest.IdleTimeout(time.Second))
		mu := locks.Mutex(v.LockPath)
		g := locktest.Lock(v, other)
		f := mu.Acquire(context.Background(), actors.WithTimeout(time.Hour))
		<-time.After(30 * time.Minute)
		if n := len(actors.Paths(locks)); n != 1 {
			v.Errorf("%d actors", n)
		}
		<-time.After(31 * time.Minute)
		locktest.Is(v, locktest.Failure(v, f), actors.ErrTimedOut)
		<-time.After(time.Minute)
		if n := len(actors.Paths(locks)); n != 0 {
			v.Errorf("%d actors", n)
		}
		locktest.Unlock(v, g)
		v.Clean()
	})
}

// The actor of a PID does not end, though the lock is idle.
func TestPinnedPID(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config, locktest.IdleTimeout(5*time.Millisecond))
		mu, other := locks.Mutex(b.LockPath), locks.Mutex(b.LockPath+"-other")
		self := locktest.PID(b, mu)
		if again := locktest.PID(b, locks.Mutex(b.LockPath)); !again.Equal(self) {
			b.Errorf("%v, then %v", self, again)
		}
		locktest.Unlock(b, locktest.Lock(b, other))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(actors.Paths(locks)) == 1 }, "the other lock's actor ends")
		all[0].Send(self, &messages.Acquire{RequestId: 1})
		all[0].Granted(1)
		all[0].Send(self, &messages.Release{RequestId: 1})
		all[0].Released(1, 0)
	})
}

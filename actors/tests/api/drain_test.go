package api

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// Drain refuses waiting and new requests, and returns when the holders have released.
func TestDrain(t *testing.T) {
	locktest.EachRecipe(t, func(v *locktest.Virtual, locks *actors.Locks, r locktest.Recipe) {
		mu := r.At(locks, v.LockPath)
		g := locktest.Lock(v, mu, actors.WithOwner("me"))
		waiting := mu.Acquire(locktest.Within(v))
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- locks.Drain(locktest.Within(v)) }()
		locktest.Is(v, locktest.Failure(v, waiting), actors.ErrDraining)
		_, err := mu.Lock(locktest.Within(v))
		locktest.Is(v, err, actors.ErrDraining)
		_, err = locks.Mutex("/another").Lock(locktest.Within(v), actors.Try())
		locktest.Is(v, err, actors.ErrDraining)
		if !r.NotReentrant {
			inner := locktest.Lock(v, mu, actors.WithOwner("me"))
			locktest.Unlock(v, inner)
		}
		synctest.Wait()
		select {
		case err := <-drained:
			v.Fatalf("drained while a lock is held: %v", err)
		default:
		}
		locktest.Must(v, g.Err())
		locktest.Unlock(v, g)
		locktest.Must(v, <-drained)
		locktest.Must(v, locks.Drain(locktest.Within(v)))
		if s := locks.Stats(); s.Held+s.Waiting != 0 {
			v.Error(locktest.StatsText(s))
		}
		locktest.Must(v, locks.Close())
		locktest.Must(v, locks.Drain(locktest.Within(v)))
	})
}

// Drain of idle locks returns at once. The error of a Drain whose context ends names the held
// locks.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		other := v.Locks()
		locktest.Must(v, other.Drain(locktest.Within(v)))
		g := locktest.Lock(v, mu, actors.WithOwner("me"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := locks.Drain(ctx)
		locktest.Is(v, err, context.DeadlineExceeded)
		for _, want := range []string{"1 requests", "/lock", `by "me"`, "since"} {
			if !strings.Contains(err.Error(), want) {
				v.Errorf("%v lacks %q", err, want)
			}
		}
		//lint:ignore SA1012 that is the test
		locktest.Is(v, locks.Drain(nil), actors.ErrInvalid)
		// Drain does not wait for a lost grant, though its owner has not released it.
		v.Expire(locks.Session().ID)
		<-g.Done()
		locktest.Must(v, locks.Drain(locktest.Within(v)))
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrSessionLost)
	})
}

// Close ends a Drain that waits, and so does the end of the bridge. The error of Drain is that
// grants were held.
func TestCloseWhileDraining(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		others, bridge := v.OnBridge()
		for l, end := range map[*actors.Locks]func() error{locks: locks.Close, others: bridge.Close} {
			g := locktest.Lock(v, l.Mutex(v.LockPath))
			drained := make(chan error)
			go func() { drained <- l.Drain(locktest.Within(v)) }()
			synctest.Wait()
			locktest.Must(v, end())
			locktest.Is(v, <-drained, actors.ErrClosed)
			locktest.Is(v, l.Drain(locktest.Within(v)), actors.ErrClosed)
			locktest.Is(v, g.Err(), actors.ErrClosed)
		}
		idle := v.Locks()
		locktest.Must(v, idle.Close())
		locktest.Must(v, idle.Drain(locktest.Within(v))) // nothing was held
	})
}

// An owner that holds may wait to enter again. Its request is refused when its grant ends: it would
// wait for others.
func TestDrainOfAnOwnerThatWaits(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(v *locktest.Virtual, g *actors.Grant){
		"release": func(v *locktest.Virtual, g *actors.Grant) { locktest.Unlock(v, g) },
		"loss": func(v *locktest.Virtual, g *actors.Grant) {
			_, err := v.Locks().Revoke(v.Context(), g.Node(), time.Second)
			locktest.Must(v, err)
			<-g.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				locks, others := v.Locks(), v.Locks()
				s := locks.Semaphore(v.LockPath, 3)
				other := locktest.Lock(v, others.Semaphore(v.LockPath, 3), actors.Permits(2))
				g := locktest.Lock(v, s, actors.WithOwner("me"))
				waiting := s.Acquire(locktest.Within(v), actors.WithOwner("me"), actors.Permits(2))
				synctest.Wait()
				drained := make(chan error, 1)
				go func() { drained <- locks.Drain(locktest.Within(v)) }()
				synctest.Wait()
				locktest.Pending(v, waiting)
				end(v, g)
				locktest.Is(v, locktest.Failure(v, waiting), actors.ErrDraining)
				locktest.Must(v, <-drained)
				locktest.Unlock(v, other)
			})
		})
	}
}

// Actors get the reason DRAINING.
func TestDrainMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		locks := b.Locks(config)
		lock := locktest.PID(b, locks.Mutex(b.LockPath))
		all[0].Send(lock, &messages.Acquire{RequestId: 1})
		all[0].Granted(1)
		all[1].Send(lock, &messages.Acquire{RequestId: 1})
		b.WaitNodes(2)
		drained := make(chan error)
		go func() { drained <- locks.Drain(locktest.Within(b)) }()
		all[1].Refused(1, messages.Reason_DRAINING)
		all[1].Send(lock, &messages.Acquire{RequestId: 2})
		all[1].Refused(2, messages.Reason_DRAINING)
		all[0].Send(lock, &messages.Release{RequestId: 1})
		all[0].Released(1, 0)
		locktest.Must(b, <-drained)
	})
}

// When Drain returns, the statistics and the monitor have counted all ends that it has waited for: the last one
// is a release, or the refusal of a request that waits for another process.
func TestDrainCounts(t *testing.T) {
	locktest.EachRecipe(t, func(v *locktest.Virtual, others *actors.Locks, r locktest.Recipe) {
		drained := func(locks *actors.Locks, m *locktest.CountingMonitor) {
			locktest.Must(v, locks.Drain(locktest.Within(v)))
			s := locks.Stats()
			if s.Held+s.Waiting != 0 {
				v.Error(locktest.StatsText(s))
			}
			locktest.Must(v, m.Compare(s))
		}
		counted := func() (*actors.Locks, *locktest.CountingMonitor) {
			m := locktest.NewCountingMonitor(v)
			m.AtEnd = func() { <-time.After(time.Second) } // virtual
			return v.Locks(m.Config), m
		}
		locks, m := counted()
		mu := r.At(locks, v.LockPath)
		g := locktest.Lock(v, mu)
		waiting := mu.Acquire(locktest.Within(v))
		synctest.Wait()
		go func() {
			if next, err := waiting.Wait(locktest.Within(v)); err == nil {
				next.Release()
			}
		}()
		g.Release()
		drained(locks, m)

		held := locktest.Lock(v, r.At(others, v.LockPath))
		locks, m = counted()
		waiting = r.At(locks, v.LockPath).Acquire(locktest.Within(v))
		synctest.Wait()
		drained(locks, m)
		locktest.Is(v, locktest.Failure(v, waiting), actors.ErrDraining)
		locktest.Unlock(v, held)
	})
}

// Goroutines acquire and release while Drain begins. No grant is left when it returns, and all
// requests end.
func TestDrainMeanwhile(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		for range 10 {
			locks := b.Locks()
			local := locks.Mutex(b.LockPath, actors.LocalQueue(actors.LocalQueueConfig{}))
			ended := make(chan error)
			for range 8 {
				go func() {
					for {
						g, err := local.Lock(locktest.Within(b))
						if err != nil {
							ended <- err
							return
						}
						g.Release()
					}
				}()
			}
			locktest.Lock(b, local).Release()
			locktest.Must(b, locks.Drain(locktest.Within(b)))
			if s := locks.Stats(); s.Held != 0 {
				b.Error(locktest.StatsText(s))
			}
			for range 8 {
				locktest.Is(b, <-ended, actors.ErrDraining)
			}
			locktest.Must(b, locks.Close())
		}
	})
}

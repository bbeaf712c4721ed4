package actors_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// Drain refuses waiting and new requests, and returns when the holders have released.
func TestDrain(t *testing.T) {
	eachRecipe(t, func(v *virtual, locks *actors.Locks, r recipe) {
		mu := r.at(locks, v.path)
		g := lock(v, mu, actors.WithOwner("me"))
		waiting := mu.Acquire(within(v))
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- locks.Drain(within(v)) }()
		is(v, failure(v, waiting), actors.ErrDraining)
		_, err := mu.Lock(within(v))
		is(v, err, actors.ErrDraining)
		_, err = locks.Mutex("/another").Lock(within(v), actors.Try())
		is(v, err, actors.ErrDraining)
		if !r.notReentrant {
			inner := lock(v, mu, actors.WithOwner("me"))
			unlock(v, inner)
		}
		synctest.Wait()
		select {
		case err := <-drained:
			v.Fatalf("drained while a lock is held: %v", err)
		default:
		}
		must(v, g.Err())
		unlock(v, g)
		must(v, <-drained)
		must(v, locks.Drain(within(v)))
		if s := locks.Stats(); s.Held+s.Waiting != 0 {
			v.Error(statsText(s))
		}
		must(v, locks.Close())
		must(v, locks.Drain(within(v)))
	})
}

// Drain of idle locks returns at once. The error of a Drain whose context ends names the held
// locks.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		other := v.locks()
		must(v, other.Drain(within(v)))
		g := lock(v, mu, actors.WithOwner("me"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := locks.Drain(ctx)
		is(v, err, context.DeadlineExceeded)
		for _, want := range []string{"1 requests", "/lock", `by "me"`, "since"} {
			if !strings.Contains(err.Error(), want) {
				v.Errorf("%v lacks %q", err, want)
			}
		}
		//lint:ignore SA1012 that is the test
		is(v, locks.Drain(nil), actors.ErrInvalid)
		// Drain does not wait for a lost grant, though its owner has not released it.
		v.Expire(locks.Session().ID)
		<-g.Done()
		must(v, locks.Drain(within(v)))
		is(v, g.Unlock(within(v)), actors.ErrSessionLost)
	})
}

// Close ends a Drain that waits, and so does the end of the bridge. The error of Drain is that
// grants were held.
func TestCloseWhileDraining(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		others, bridge := v.onBridge()
		for l, end := range map[*actors.Locks]func() error{locks: locks.Close, others: bridge.Close} {
			g := lock(v, l.Mutex(v.path))
			drained := make(chan error)
			go func() { drained <- l.Drain(within(v)) }()
			synctest.Wait()
			must(v, end())
			is(v, <-drained, actors.ErrClosed)
			is(v, l.Drain(within(v)), actors.ErrClosed)
			is(v, g.Err(), actors.ErrClosed)
		}
		idle := v.locks()
		must(v, idle.Close())
		must(v, idle.Drain(within(v))) // nothing was held
	})
}

// An owner that holds may wait to enter again. Its request is refused when its grant ends: it would
// wait for others.
func TestDrainOfAnOwnerThatWaits(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(v *virtual, g *actors.Grant){
		"release": func(v *virtual, g *actors.Grant) { unlock(v, g) },
		"loss": func(v *virtual, g *actors.Grant) {
			_, err := v.locks().Revoke(v.Context(), g.Node(), time.Second)
			must(v, err)
			<-g.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				locks, others := v.locks(), v.locks()
				s := locks.Semaphore(v.path, 3)
				other := lock(v, others.Semaphore(v.path, 3), actors.Permits(2))
				g := lock(v, s, actors.WithOwner("me"))
				waiting := s.Acquire(within(v), actors.WithOwner("me"), actors.Permits(2))
				synctest.Wait()
				drained := make(chan error, 1)
				go func() { drained <- locks.Drain(within(v)) }()
				synctest.Wait()
				pending(v, waiting)
				end(v, g)
				is(v, failure(v, waiting), actors.ErrDraining)
				must(v, <-drained)
				unlock(v, other)
			})
		})
	}
}

// Actors get the reason DRAINING.
func TestDrainMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		locks := b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		all[0].send(lock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[1].send(lock, &messages.Acquire{RequestId: 1})
		b.waitNodes(2)
		drained := make(chan error)
		go func() { drained <- locks.Drain(within(b)) }()
		all[1].refused(1, messages.Reason_DRAINING)
		all[1].send(lock, &messages.Acquire{RequestId: 2})
		all[1].refused(2, messages.Reason_DRAINING)
		all[0].send(lock, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
		must(b, <-drained)
	})
}

// Goroutines acquire and release while Drain begins. No grant is left when it returns, and all
// requests end.
func TestDrainMeanwhile(t *testing.T) {
	each(t, func(b *testLock) {
		for range 10 {
			locks := b.locks()
			local := locks.Mutex(b.path, actors.LocalQueue(actors.LocalQueueConfig{}))
			ended := make(chan error)
			for range 8 {
				go func() {
					for {
						g, err := local.Lock(within(b))
						if err != nil {
							ended <- err
							return
						}
						g.Release()
					}
				}()
			}
			lock(b, local).Release()
			must(b, locks.Drain(within(b)))
			if s := locks.Stats(); s.Held != 0 {
				b.Error(statsText(s))
			}
			for range 8 {
				is(b, <-ended, actors.ErrDraining)
			}
			must(b, locks.Close())
		}
	})
}

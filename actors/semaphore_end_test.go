package actors_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// One of the three actors fails: all are told, the nodes go, and the next request is
// served by fresh ones.
func TestSemaphorePanic(t *testing.T) {
	for _, part := range []string{"semaphore", "queue", "leases"} {
		t.Run(part, func(t *testing.T) {
			each(t, func(b *bed) {
				var log logs
				locks, other := b.locks(log.config), b.semaphore(3)
				s := locks.Semaphore(b.path, 3)
				g := permits(b, s, 2)
				waiting := s.Acquire(within(b), actors.Permits(2), actors.WithOwner("me"))
				timed := s.Acquire(within(b), actors.WithTimeout(time.Hour))
				b.waitFor(2, 5)
				foreign := other.Acquire(within(b), actors.Permits(3))
				b.waitFor(3, 5)
				actors.PoisonSemaphore(s, part)
				closes(b, g.Done(), "the grant")
				for _, err := range []error{failure(b, waiting), failure(b, timed), g.Err()} {
					is(b, err, actors.ErrInternal)
				}
				unlock(b, result(b, foreign))
				if len(log.with("actor failed")) != 1 {
					b.Errorf("the log tells %q", log.with("actor failed"))
				}
				is(b, failure(b, g.Release()), actors.ErrInternal)
				zktest.Eventually(b, patience, func() bool {
					g, err := s.Lock(within(b), actors.Permits(3), actors.WithOwner("me"))
					if err == nil {
						unlock(b, g)
					} else {
						is(b, err, actors.ErrInternal)
					}
					return err == nil
				}, "it serves again")
				b.waitFor(0, 0)
			})
		})
	}
}

func TestSemaphorePanicDuringRelease(t *testing.T) {
	for _, part := range []string{"semaphore", "leases"} {
		t.Run(part, func(t *testing.T) {
			onEmbedded(t, func(b *bed) {
				s := b.semaphore(2)
				g := permits(b, s, 2)
				b.waitFor(0, 2)
				b.Embedded().Pause()
				release := g.Release()
				actors.PoisonSemaphore(s, part)
				is(b, failure(b, release), actors.ErrInternal)
				b.Embedded().Resume()
				b.waitFor(0, 0)
			})
		})
	}
}

// Close ends those who hold, those who wait and those who release.
func TestSemaphoreClose(t *testing.T) {
	each(t, func(b *bed) {
		locks, other := b.locks(), b.semaphore(3)
		s := locks.Semaphore(b.path, 3)
		g, h := permits(b, s, 2), permits(b, s, 1)
		var fs []*actors.Future[*actors.Grant]
		for n := range 3 {
			fs = append(fs, s.Acquire(within(b), actors.Permits(n+1)))
		}
		b.waitFor(3, 9)
		foreign := other.Acquire(within(b), actors.Permits(3))
		b.waitFor(4, 9)
		release := h.Release()
		must(b, locks.Close())
		if _, err := release.Result(); err != nil {
			is(b, err, actors.ErrClosed)
		}
		for _, f := range fs {
			if _, err := f.Result(); err != nil {
				is(b, err, actors.ErrClosed)
			}
		}
		is(b, g.Err(), actors.ErrClosed)
		_, err := s.Lock(within(b))
		is(b, err, actors.ErrClosed)
		unlock(b, result(b, foreign))
	})
}

// The actors of an unused semaphore end, all three.
func TestSemaphoreRetires(t *testing.T) {
	each(t, func(b *bed) {
		locks := b.locks(func(cfg *actors.Config) { cfg.IdleTimeout = 50 * time.Millisecond })
		s := locks.Semaphore(b.path, 2)
		for range 3 {
			g := permits(b, s, 2)
			if len(actors.Paths(locks)) != 3 {
				b.Errorf("actors of %v", actors.Paths(locks))
			}
			unlock(b, g)
			zktest.Eventually(b, patience, func() bool { return len(actors.Paths(locks)) == 0 }, "they retire")
		}
	})
}

// The session ends in each stage: who holds is told, who waits gets in.
func TestSemaphoreSessionLoss(t *testing.T) {
	each(t, func(b *bed) {
		locks, s := b.locks(), b.semaphore(3)
		victim := locks.Semaphore(b.path, 3)
		held := permits(b, victim, 2)
		var got []*actors.Future[*actors.Grant]
		for range 3 {
			got = append(got, victim.Acquire(within(b), actors.Permits(2)))
		}
		b.waitFor(3, 8)
		foreign := s.Acquire(within(b), actors.Permits(3))
		b.waitFor(4, 8)
		b.expire(locks)
		closes(b, held.Done(), "the grant")
		is(b, held.Err(), actors.ErrSessionLost)
		unlock(b, result(b, foreign))
		for _, f := range got { // whichever is first
			go func() {
				if g, err := f.Result(); err != nil {
					b.Error(err)
				} else {
					g.Release()
				}
			}()
		}
		for _, f := range got {
			closes(b, f.Done(), "a wait")
		}
		// Releasing while the session goes.
		g := permits(b, victim, 2)
		b.Expire(b, locks.Session().ID)
		if err := g.Unlock(within(b)); err != nil && !errors.Is(err, actors.ErrSessionLost) {
			b.Error(err)
		}
		unlock(b, permits(b, victim, 3))
	})
}

func TestSemaphoreSuspended(t *testing.T) {
	besides(t, func(b *bed) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr(), func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		g := permits(b, locks.Semaphore(b.path, 3), 2)
		ctx := g.Context(b.Context())
		f := locks.Semaphore(b.path, 3).Acquire(within(b), actors.Permits(2))
		b.waitFor(1, 4)
		proxy.Refuse(true)
		proxy.Cut()
		closes(b, ctx.Done(), "the context")
		is(b, context.Cause(ctx), actors.ErrSuspended)
		must(b, g.Err())
		proxy.Refuse(false)
		state(b, locks, messages.SessionState_CONNECTED)
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// One lease of a request that waits for more is deleted: it waits on, and gets in.
func TestSemaphoreLosesPartWhileWaiting(t *testing.T) {
	each(t, func(b *bed) {
		s, other, conn := b.semaphore(3), b.semaphore(3), b.Client(b)
		g := permits(b, s, 1)
		f := other.Acquire(within(b), actors.Permits(3)) // two of them are given
		b.waitFor(1, 4)
		behind := s.Acquire(within(b))
		b.waitFor(2, 4)
		names := slices.DeleteFunc(b.leases(), func(name string) bool { return strings.HasSuffix(g.Node(), name) })
		must(b, conn.Delete(b.path+"/leases/"+names[0], -1))
		// Whoever is first now, both come in.
		h := result(b, behind)
		pending(b, f)
		unlock(b, g)
		pending(b, f)
		unlock(b, h)
		unlock(b, result(b, f))
	})
}

// ---- the tests of kazoo's and Consul's semaphores that ours has no other for

func TestSemaphoreNonBlockingRelease(t *testing.T) {
	each(t, func(b *bed) {
		one, two := b.semaphore(1), b.semaphore(1)
		g := permits(b, one, 1, actors.Try())
		_, err := two.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		b.waitFor(0, 1)
		unlock(b, g)
		g = permits(b, two, 1, actors.Try())
		_, err = one.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
	})
}

func TestSemaphoreAcquireAfterCancelled(t *testing.T) {
	each(t, func(b *bed) {
		one, two := b.semaphore(1), b.semaphore(1)
		g := permits(b, one, 1)
		for range 3 {
			f := two.Acquire(within(b))
			b.waitFor(1, 2)
			f.Cancel()
			is(b, failure(b, f), actors.ErrCancelled)
			b.waitFor(0, 1)
		}
		f := two.Acquire(within(b))
		unlock(b, g)
		unlock(b, result(b, f))
		for range 3 { // and one that acquires again and again
			unlock(b, permits(b, one, 1))
		}
	})
}

// Everybody gets a turn, in order of arrival, whatever they want.
func TestSemaphoreContend(t *testing.T) {
	each(t, func(b *bed) {
		ss := []*actors.Semaphore{b.semaphore(3), b.semaphore(3), b.semaphore(3)}
		g := permits(b, ss[0], 3)
		var fs []*actors.Future[*actors.Grant]
		want := []int{1, 3, 2, 1, 3, 3, 1, 1, 1}
		for i, n := range want {
			fs = append(fs, ss[i%3].Acquire(within(b), actors.Permits(n)))
			zktest.Eventually(b, patience, func() bool { return len(b.queue()) == i+1 }, "it is in the queue")
		}
		unlock(b, g)
		for i := 0; i < len(want); {
			var together []*actors.Grant
			for room := 3; i < len(want) && want[i] <= room; i++ {
				room -= want[i]
				together = append(together, result(b, fs[i]))
			}
			pending(b, fs[i:]...)
			for _, g := range together {
				unlock(b, g)
			}
		}
	})
}

// The wait is bounded also while ZooKeeper does not answer.
func TestSemaphoreTimeoutWithoutServer(t *testing.T) {
	onEmbedded(t, func(b *bed) {
		s := b.semaphore(2)
		g := permits(b, s, 1)
		b.Embedded().Pause()
		_, err := s.Lock(within(b), actors.Permits(2), actors.WithTimeout(100*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		b.Embedded().Resume()
		unlock(b, g)
		b.waitFor(0, 0)
	})
}

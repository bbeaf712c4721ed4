package failures

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A waiter whose session expires queues again, behind the others, and holds in its turn.
func TestKilledSession(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, holder := b.Locks(), b.Mutex()
		g := locktest.Lock(b, holder)
		f := locks.Mutex(b.LockPath).Acquire(locktest.Within(b))
		b.WaitNodes(2)
		behind := holder.Acquire(locktest.Within(b))
		b.WaitNodes(3)
		b.ExpireSession(locks)
		b.WaitNodes(3)
		locktest.Pending(b, f, behind)
		locktest.Unlock(b, g)
		h := locktest.Result(b, behind)
		locktest.Pending(b, f)
		locktest.Unlock(b, h)
		last := locktest.Result(b, f)
		if last.Session() != locks.Session().ID {
			b.Errorf("session %#x, not %#x", last.Session(), locks.Session().ID)
		}
		locktest.Unlock(b, last)
	})
}

// The loss of the session does not extend a timeout.
func TestDeadlineOutlivesSession(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		holder := v.Mutex()
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		g := locktest.Lock(v, holder)
		const wait = 3 * locktest.SessionTimeout
		begun := time.Now()
		ctx, cancel := context.WithTimeout(v.Context(), wait)
		defer cancel()
		timed, bound := mu.Acquire(context.Background(), actors.WithTimeout(wait)), mu.Acquire(ctx)
		<-time.After(locktest.SessionTimeout)
		for _, epoch := range []uint64{1, 2} {
			if s := locks.Session(); s.Epoch != epoch || len(v.LockNodes()) != 3 {
				v.Fatalf("%+v; nodes %v", s, v.LockNodes())
			}
			v.Expire(locks.Session().ID)
			<-time.After(locktest.SessionTimeout / 2)
		}
		locktest.Pending(v, timed, bound)
		locktest.Is(v, locktest.Failure(v, timed), actors.ErrTimedOut)
		locktest.Is(v, locktest.Failure(v, bound), context.DeadlineExceeded)
		if took := time.Since(begun); took != wait {
			v.Errorf("after %v", took)
		}
		locktest.Unlock(v, g)
		v.Clean()
	})
}

// Many waiters of one session keep their order in the next.
func TestManyWaitersLoseSession(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		mu := locks.Mutex(b.LockPath)
		g := locktest.Lock(b, mu)
		var fs []*actors.Future[*actors.Grant]
		for i := range 30 {
			fs = append(fs, mu.Acquire(locktest.Within(b)))
			if i%10 == 0 {
				b.WaitNodes(i + 2)
			}
		}
		fs[7].Cancel()
		b.ExpireSession(locks)
		locktest.Is(b, locktest.Failure(b, fs[7]), actors.ErrCancelled)
		locktest.Closes(b, g.Done(), "the lost grant")
		results := make(chan actors.Token, len(fs))
		for i, f := range fs {
			if i != 7 {
				go func() {
					g, err := f.Result()
					if err != nil {
						b.Error(err)
					} else {
						results <- g.Token()
						g.Release()
						return
					}
					results <- actors.Token{}
				}()
			}
		}
		last := g.Token()
		for range len(fs) - 1 {
			token := <-results
			locktest.ExpectIncreasing(b, last, token)
			last = token
		}
		g.Release()
	})
}

// The session expires again and again while goroutines acquire and release.
func TestSessionsComeAndGo(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		stop := make(chan struct{})
		done := make(chan int)
		for _, mu := range []*actors.Mutex{locks.Mutex(b.LockPath), others.Mutex(b.LockPath), locks.Mutex(b.LockPath)} {
			go func() {
				n := 0
				for ; !locktest.IsClosed(stop); n++ {
					g, err := mu.Lock(locktest.Within(b))
					if err != nil {
						b.Error(err)
						break
					}
					// The client may see the end of its node before the end of the session.
					if err := g.Unlock(locktest.Within(b)); err != nil && !errors.Is(err, actors.ErrNodeDeleted) {
						locktest.Is(b, err, actors.ErrSessionLost)
					}
				}
				done <- n
			}()
		}
		for range 3 {
			b.ExpireSession(locks)
		}
		close(stop)
		for range 3 {
			if n := <-done; n == 0 {
				b.Error("a process has never held")
			}
		}
	})
}

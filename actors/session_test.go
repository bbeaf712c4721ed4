package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A waiter whose session expires queues again, behind the others, and holds in its turn.
func TestKilledSession(t *testing.T) {
	each(t, func(b *testLock) {
		locks, holder := b.locks(), b.mutex()
		g := lock(b, holder)
		f := locks.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		behind := holder.Acquire(within(b))
		b.waitNodes(3)
		b.expire(locks)
		b.waitNodes(3)
		pending(b, f, behind)
		unlock(b, g)
		h := result(b, behind)
		pending(b, f)
		unlock(b, h)
		last := result(b, f)
		if last.Session() != locks.Session().ID {
			b.Errorf("session %#x, not %#x", last.Session(), locks.Session().ID)
		}
		unlock(b, last)
	})
}

// The loss of the session does not extend a timeout.
func TestDeadlineOutlivesSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		holder := v.mutex()
		locks := v.locks()
		mu := locks.Mutex(v.path)
		g := lock(v, holder)
		const wait = 3 * session
		begun := time.Now()
		ctx, cancel := context.WithTimeout(v.Context(), wait)
		defer cancel()
		timed, bound := mu.Acquire(context.Background(), actors.WithTimeout(wait)), mu.Acquire(ctx)
		<-time.After(session)
		for _, epoch := range []uint64{1, 2} {
			if s := locks.Session(); s.Epoch != epoch || len(v.nodes()) != 3 {
				v.Fatalf("%+v; nodes %v", s, v.nodes())
			}
			v.Expire(locks.Session().ID)
			<-time.After(session / 2)
		}
		pending(v, timed, bound)
		is(v, failure(v, timed), actors.ErrTimedOut)
		is(v, failure(v, bound), context.DeadlineExceeded)
		if took := time.Since(begun); took != wait {
			v.Errorf("after %v", took)
		}
		unlock(v, g)
		v.clean()
	})
}

// Many waiters of one session keep their order in the next.
func TestManyWaitersLoseSession(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		var fs []*actors.Future[*actors.Grant]
		for i := range 30 {
			fs = append(fs, mu.Acquire(within(b)))
			if i%10 == 0 {
				b.waitNodes(i + 2)
			}
		}
		fs[7].Cancel()
		b.expire(locks)
		is(b, failure(b, fs[7]), actors.ErrCancelled)
		closes(b, g.Done(), "the lost grant")
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
			expectIncreasing(b, last, token)
			last = token
		}
		g.Release()
	})
}

// The session expires again and again while goroutines acquire and release.
func TestSessionsComeAndGo(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		stop := make(chan struct{})
		done := make(chan int)
		for _, mu := range []*actors.Mutex{locks.Mutex(b.path), others.Mutex(b.path), locks.Mutex(b.path)} {
			go func() {
				n := 0
				for ; !isClosed(stop); n++ {
					g, err := mu.Lock(within(b))
					if err != nil {
						b.Error(err)
						break
					}
					// The client may see the end of its node before the end of the session.
					if err := g.Unlock(within(b)); err != nil && !errors.Is(err, actors.ErrNodeDeleted) {
						is(b, err, actors.ErrSessionLost)
					}
				}
				done <- n
			}()
		}
		for range 3 {
			b.expire(locks)
		}
		close(stop)
		for range 3 {
			if n := <-done; n == 0 {
				b.Error("a process has never held")
			}
		}
	})
}

package failures

import (
	"context"
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
		first := locks.Session().Epoch
		for lost := range uint64(2) {
			if s := locks.Session(); s.Epoch != first+lost || len(v.LockNodes()) != 3 {
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

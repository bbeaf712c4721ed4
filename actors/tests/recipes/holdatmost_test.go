package recipes

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// The holder gets a request to release after three quarters of the time. At the end it loses the
// lock before the next contender holds.
func TestHoldAtMost(t *testing.T) {
	t.Parallel()
	locktest.EachRecipe(t, func(v *locktest.Virtual, locks *actors.Locks, r locktest.Recipe) {
		mu := r.At(locks, v.LockPath)
		g := locktest.Lock(v, mu, actors.HoldAtMost(4*time.Second))
		start := time.Now()
		next, work := mu.Acquire(locktest.Within(v)), g.Context(context.Background())
		<-g.Revoked()
		if d := time.Since(start); d != 3*time.Second || g.Err() != nil {
			v.Errorf("asked to release after %v, %v", d, g.Err())
		}
		<-g.Done()
		if d := time.Since(start); d != 4*time.Second {
			v.Errorf("ended after %v", d)
		}
		locktest.Is(v, g.Err(), actors.ErrHoldExpired)
		locktest.Is(v, context.Cause(work), actors.ErrHoldExpired)
		second := locktest.Result(v, next)
		locktest.Is(v, g.Err(), actors.ErrHoldExpired)
		if second.Err() != nil || second.Token().Compare(g.Token()) <= 0 {
			v.Errorf("next: %v, token %v after %v", second.Err(), second.Token(), g.Token())
		}
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrHoldExpired)
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrNotHeld)
		if second.Err() != nil {
			v.Error("the release of the first has ended the second")
		}
		locktest.Unlock(v, second)
		synctest.Wait()
		if s := locks.Stats(); s.Held != 0 || s.Waiting != 0 || s.Lost[actors.ErrHoldExpired] != 1 || s.Acquired != 2 || s.Released != 1 {
			v.Error(locktest.StatsText(s))
		}
		if open := locks.OpenRequests(); len(open) != 0 {
			v.Errorf("open %v", open)
		}
	})
}

// A grant that is released in time does not expire, and neither does the next.
func TestHoldAtMostReleased(t *testing.T) {
	t.Parallel()
	locktest.EachRecipe(t, func(v *locktest.Virtual, locks *actors.Locks, r locktest.Recipe) {
		mu := r.At(locks, v.LockPath)
		for range 3 {
			g := locktest.Lock(v, mu, actors.HoldAtMost(4*time.Second))
			<-time.After(3500 * time.Millisecond)
			locktest.Unlock(v, g)
			locktest.Is(v, g.Err(), actors.ErrReleased)
		}
		g := locktest.Lock(v, mu)
		<-time.After(time.Minute)
		locktest.Must(v, g.Err())
		locktest.Unlock(v, g)
	})
}

// The requests of a named owner are refused until it has released the expired grant, as after any
// loss.
func TestHoldAtMostNamed(t *testing.T) {
	locktest.EachRecipe(t, func(v *locktest.Virtual, locks *actors.Locks, r locktest.Recipe) {
		mu := r.At(locks, v.LockPath)
		me := actors.WithOwner("me")
		g := locktest.Lock(v, mu, me, actors.HoldAtMost(time.Second))
		<-g.Done()
		_, err := mu.Lock(locktest.Within(v), me)
		if r.ForgetsLoss {
			locktest.Must(v, err)
			return
		}
		locktest.Is(v, err, actors.ErrHoldExpired)
		other := locktest.Lock(v, mu, actors.WithOwner("other"))
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrHoldExpired)
		locktest.Unlock(v, other)
		locktest.Unlock(v, locktest.Lock(v, mu, me))
		synctest.Wait()
		if s := locks.Stats(); s.Held != 0 || len(locks.OpenRequests()) != 0 {
			v.Errorf("%s; open %v", locktest.StatsText(s), locks.OpenRequests())
		}
	})
}

// The next contender waits for the lock-delay after HoldAtMost has ended a grant, whose holder may
// still work.
func TestHoldAtMostLockDelay(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex("/all/d", actors.LockDelay(time.Second))
		for name, end := range map[string]func(*actors.Grant) time.Duration{
			"expired":  func(*actors.Grant) time.Duration { return time.Second },
			"released": func(g *actors.Grant) time.Duration { locktest.Unlock(v, g); return 0 },
		} {
			g := locktest.Lock(v, mu, actors.HoldAtMost(4*time.Second))
			next := mu.Acquire(locktest.Within(v))
			<-g.Revoked()
			delay := end(g)
			<-g.Done()
			start := time.Now()
			second := locktest.Result(v, next)
			if d := time.Since(start); d < delay || d > delay+100*time.Millisecond {
				v.Errorf("%s: the next contender holds after %v", name, d)
			}
			locktest.Unlock(v, second)
		}
	})
}

// HoldAtMost of one request does not end the re-entry by another.
func TestHoldAtMostReentry(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		mu := v.Mutex()
		me := actors.WithOwner("me")
		outer := locktest.Lock(v, mu, me, actors.HoldAtMost(time.Second))
		inner := locktest.Lock(v, mu, me)
		<-outer.Done()
		locktest.Must(v, inner.Err())
		_, err := mu.Lock(locktest.Within(v), actors.Try())
		locktest.Is(v, err, actors.ErrNotAcquired)
		locktest.Unlock(v, inner)
		locktest.Unlock(v, locktest.Lock(v, mu))
		outer.Release()
	})
}

// The time of HoldAtMost goes on while the machine is suspended, though timers do not.
func TestHoldAtMostWhileSuspended(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		var suspended atomic.Int64
		system := host.NewSystem(nil, slog.New(slog.DiscardHandler))
		bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: v.Fixture.Addr(), SessionTimeout: locktest.LongSession, Dial: v.Fixture.Dial,
			SuspendedFor: func() time.Duration { return time.Duration(suspended.Load()) }})
		locktest.Must(v, err)
		locks := actors.New(system, bridge, actors.Config{})
		g := locktest.Lock(v, locks.Mutex(v.LockPath), actors.HoldAtMost(20*time.Second))
		next := v.Mutex().Acquire(locktest.Within(v))
		<-time.After(5500 * time.Millisecond)
		locktest.Must(v, g.Err())
		suspended.Store(int64(15 * time.Second))
		start := time.Now()
		<-time.After(time.Millisecond)
		locktest.Is(v, g.Err(), actors.ErrHoldExpired)
		locktest.Unlock(v, locktest.Result(v, next))
		if d := time.Since(start); d > time.Second {
			v.Errorf("the next contender holds after %v", d)
		}
		locktest.Is(v, g.Unlock(locktest.Within(v)), actors.ErrHoldExpired)
		locktest.Must(v, errors.Join(locks.Close(), bridge.Close()))
		system.Close()
	})
}

// The message Acquire has the limit as a field, and the message Lost has the end.
func TestHoldAtMostMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice := all[0]
		lock := locktest.PID(b, b.Mutex(config))
		alice.Send(lock, &messages.Acquire{RequestId: 1, HoldNanos: -1})
		alice.Refused(1, messages.Reason_INVALID)
		for _, owner := range []string{"", "alice"} {
			alice.Send(lock, &messages.Acquire{RequestId: 2, Owner: owner, HoldNanos: int64(20 * time.Millisecond)})
			alice.Granted(2)
			locktest.ExpectMessage[*messages.RevokeRequested](alice)
			if m := locktest.ExpectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_HOLD_EXPIRED || m.GetRequestId() != 2 {
				b.Errorf("%v", m)
			}
			if owner != "" {
				alice.Send(lock, &messages.Acquire{RequestId: 3, Owner: owner})
				alice.Refused(3, messages.Reason_HOLD_EXPIRED)
				alice.Send(lock, &messages.Release{RequestId: 2, Owner: owner})
				alice.Refused(2, messages.Reason_HOLD_EXPIRED)
				alice.Send(lock, &messages.Acquire{RequestId: 2, Owner: owner, HoldNanos: int64(20 * time.Millisecond)})
				alice.Granted(2)
				locktest.ExpectMessage[*messages.RevokeRequested](alice)
				locktest.ExpectMessage[*messages.Lost](alice)
				alice.Send(lock, &messages.Cancel{RequestId: 2, Owner: owner})
				alice.Refused(2, messages.Reason_CANCELLED)
			}
			alice.Send(lock, &messages.Release{RequestId: 2, Owner: owner})
			alice.Refused(2, messages.Reason_NOT_HELD)
		}
		b.WaitNodes(0)
	})
}

// A waiting request with FailOnSessionLoss fails with the session; one without goes on, and a new
// request with it waits.
func TestFailOnSessionLoss(t *testing.T) {
	locktest.EachRecipe(t, func(v *locktest.Virtual, locks *actors.Locks, r locktest.Recipe) {
		mu := r.At(locks, v.LockPath)
		holder := locktest.Lock(v, mu)
		fails, goesOn := mu.Acquire(locktest.Within(v), actors.FailOnSessionLoss()), mu.Acquire(locktest.Within(v))
		synctest.Wait()
		v.Expire(locks.Session().ID)
		locktest.Is(v, locktest.Failure(v, fails), actors.ErrSessionLost)
		locktest.Closes(v, holder.Done(), "the lost grant")
		g := locktest.Result(v, goesOn)
		waiting := mu.Acquire(locktest.Within(v), actors.FailOnSessionLoss())
		if v.Resumes() {
			v.DropConnections() // the session goes on
			<-time.After(time.Second)
		}
		locktest.Pending(v, waiting)
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Result(v, waiting))
		synctest.Wait()
		if s := locks.Stats(); s.Held+s.Waiting != 0 || s.Refused[actors.ErrSessionLost] != 1 {
			v.Error(locktest.StatsText(s))
		}
	})
}

// A request with FailOnSessionLoss ends with ErrSessionLost, and not with a context's error, while
// the server does not answer.
func TestFailOnSessionLossWithoutServer(t *testing.T) {
	locktest.NeedsZooKeeper(t, "an outage of ZooKeeper in its error")
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		mu := v.Mutex()
		locktest.Lock(v, mu)
		f := mu.Acquire(locktest.Within(v), actors.FailOnSessionLoss())
		v.Pause()
		start := time.Now()
		err := locktest.Failure(v, f)
		locktest.Is(v, err, actors.ErrSessionLost)
		if !strings.Contains(err.Error(), "no answer from ZooKeeper since") {
			v.Error(err)
		}
		if d := time.Since(start); d > locktest.SessionTimeout {
			v.Errorf("after %v", d)
		}
		v.Resume()
	})
}

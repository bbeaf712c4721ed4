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

// The holder gets a request to release after three quarters of the time. At the end it loses the
// lock before the next contender holds.
func TestHoldAtMost(t *testing.T) {
	t.Parallel()
	eachRecipe(t, func(v *virtual, locks *actors.Locks, r recipe) {
		mu := r.at(locks, v.path)
		g := lock(v, mu, actors.HoldAtMost(4*time.Second))
		start := time.Now()
		next, work := mu.Acquire(within(v)), g.Context(context.Background())
		<-g.Revoked()
		if d := time.Since(start); d != 3*time.Second || g.Err() != nil {
			v.Errorf("asked to release after %v, %v", d, g.Err())
		}
		<-g.Done()
		if d := time.Since(start); d != 4*time.Second {
			v.Errorf("ended after %v", d)
		}
		is(v, g.Err(), actors.ErrHoldExpired)
		is(v, context.Cause(work), actors.ErrHoldExpired)
		second := result(v, next)
		is(v, g.Err(), actors.ErrHoldExpired)
		if second.Err() != nil || second.Token().Compare(g.Token()) <= 0 {
			v.Errorf("next: %v, token %v after %v", second.Err(), second.Token(), g.Token())
		}
		is(v, g.Unlock(within(v)), actors.ErrHoldExpired)
		is(v, g.Unlock(within(v)), actors.ErrNotHeld)
		if second.Err() != nil {
			v.Error("the release of the first has ended the second")
		}
		unlock(v, second)
		synctest.Wait()
		if s := locks.Stats(); s.Held != 0 || s.Waiting != 0 || s.Lost[actors.ErrHoldExpired] != 1 || s.Acquired != 2 || s.Released != 1 {
			v.Error(statsText(s))
		}
		if open := locks.Open(); len(open) != 0 {
			v.Errorf("open %v", open)
		}
	})
}

// A grant that is released in time does not expire, and neither does the next.
func TestHoldAtMostReleased(t *testing.T) {
	t.Parallel()
	eachRecipe(t, func(v *virtual, locks *actors.Locks, r recipe) {
		mu := r.at(locks, v.path)
		for range 3 {
			g := lock(v, mu, actors.HoldAtMost(4*time.Second))
			<-time.After(3500 * time.Millisecond)
			unlock(v, g)
			is(v, g.Err(), actors.ErrReleased)
		}
		g := lock(v, mu)
		<-time.After(time.Minute)
		must(v, g.Err())
		unlock(v, g)
	})
}

// The requests of a named owner are refused until it has released the expired grant, as after any
// loss.
func TestHoldAtMostNamed(t *testing.T) {
	eachRecipe(t, func(v *virtual, locks *actors.Locks, r recipe) {
		mu := r.at(locks, v.path)
		me := actors.WithOwner("me")
		g := lock(v, mu, me, actors.HoldAtMost(time.Second))
		<-g.Done()
		_, err := mu.Lock(within(v), me)
		if r.forgetsLoss {
			must(v, err)
			return
		}
		is(v, err, actors.ErrHoldExpired)
		other := lock(v, mu, actors.WithOwner("other"))
		is(v, g.Unlock(within(v)), actors.ErrHoldExpired)
		unlock(v, other)
		unlock(v, lock(v, mu, me))
		synctest.Wait()
		if s := locks.Stats(); s.Held != 0 || len(locks.Open()) != 0 {
			v.Errorf("%s; open %v", statsText(s), locks.Open())
		}
	})
}

// The next contender waits for the lock-delay after HoldAtMost has ended a grant, whose holder may
// still work.
func TestHoldAtMostLockDelay(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex("/all/d", actors.LockDelay(time.Second))
		for name, end := range map[string]func(*actors.Grant) time.Duration{
			"expired":  func(*actors.Grant) time.Duration { return time.Second },
			"released": func(g *actors.Grant) time.Duration { unlock(v, g); return 0 },
		} {
			g := lock(v, mu, actors.HoldAtMost(4*time.Second))
			next := mu.Acquire(within(v))
			<-g.Revoked()
			delay := end(g)
			<-g.Done()
			start := time.Now()
			second := result(v, next)
			if d := time.Since(start); d < delay || d > delay+100*time.Millisecond {
				v.Errorf("%s: the next contender holds after %v", name, d)
			}
			unlock(v, second)
		}
	})
}

// HoldAtMost of one request does not end the re-entry by another.
func TestHoldAtMostReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		me := actors.WithOwner("me")
		outer := lock(v, mu, me, actors.HoldAtMost(time.Second))
		inner := lock(v, mu, me)
		<-outer.Done()
		must(v, inner.Err())
		_, err := mu.Lock(within(v), actors.Try())
		is(v, err, actors.ErrNotAcquired)
		unlock(v, inner)
		unlock(v, lock(v, mu))
		outer.Release()
	})
}

// A process that was paused reads the end from the clock, before any timer has fired.
func TestHoldAtMostByTheClock(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		g := lock(b, b.mutex(), actors.HoldAtMost(50*time.Millisecond))
		unlockAcquisition := actors.LockAcquisition(g) // so that the actor cannot end it
		<-time.After(60 * time.Millisecond)
		unlockAcquisition()
		is(b, g.Err(), actors.ErrHoldExpired)
		is(b, g.Unlock(within(b)), actors.ErrHoldExpired)
	})
}

// The message Acquire has the limit as a field, and the message Lost has the end.
func TestHoldAtMostMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice := all[0]
		lock := pid(b, b.mutex(config))
		alice.send(lock, &messages.Acquire{RequestId: 1, HoldNanos: -1})
		alice.refused(1, messages.Reason_INVALID)
		for _, owner := range []string{"", "alice"} {
			alice.send(lock, &messages.Acquire{RequestId: 2, Owner: owner, HoldNanos: int64(20 * time.Millisecond)})
			alice.granted(2)
			expectMessage[*messages.RevokeRequested](alice)
			if m := expectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_HOLD_EXPIRED || m.GetRequestId() != 2 {
				b.Errorf("%v", m)
			}
			if owner != "" {
				alice.send(lock, &messages.Acquire{RequestId: 3, Owner: owner})
				alice.refused(3, messages.Reason_HOLD_EXPIRED)
				alice.send(lock, &messages.Release{RequestId: 2, Owner: owner})
				alice.refused(2, messages.Reason_HOLD_EXPIRED)
				alice.send(lock, &messages.Acquire{RequestId: 2, Owner: owner, HoldNanos: int64(20 * time.Millisecond)})
				alice.granted(2)
				expectMessage[*messages.RevokeRequested](alice)
				expectMessage[*messages.Lost](alice)
				alice.send(lock, &messages.Cancel{RequestId: 2, Owner: owner})
				alice.refused(2, messages.Reason_CANCELLED)
			}
			alice.send(lock, &messages.Release{RequestId: 2, Owner: owner})
			alice.refused(2, messages.Reason_NOT_HELD)
		}
		b.waitNodes(0)
	})
}

// A waiting request with FailOnSessionLoss fails with the session; one without goes on, and a new
// request with it waits.
func TestFailOnSessionLoss(t *testing.T) {
	eachRecipe(t, func(v *virtual, locks *actors.Locks, r recipe) {
		mu := r.at(locks, v.path)
		holder := lock(v, mu)
		fails, goesOn := mu.Acquire(within(v), actors.FailOnSessionLoss()), mu.Acquire(within(v))
		synctest.Wait()
		v.Expire(locks.Session().ID)
		is(v, failure(v, fails), actors.ErrSessionLost)
		closes(v, holder.Done(), "the lost grant")
		g := result(v, goesOn)
		waiting := mu.Acquire(within(v), actors.FailOnSessionLoss())
		v.DropConnections() // the session goes on
		<-time.After(time.Second)
		pending(v, waiting)
		unlock(v, g)
		unlock(v, result(v, waiting))
		synctest.Wait()
		if s := locks.Stats(); s.Held+s.Waiting != 0 || s.Refused[actors.ErrSessionLost] != 1 {
			v.Error(statsText(s))
		}
	})
}

// A request with FailOnSessionLoss ends with ErrSessionLost, and not with a context's error, while
// the server does not answer.
func TestFailOnSessionLossWithoutServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		lock(v, mu)
		f := mu.Acquire(within(v), actors.FailOnSessionLoss())
		v.Pause()
		start := time.Now()
		err := failure(v, f)
		is(v, err, actors.ErrSessionLost)
		if !strings.Contains(err.Error(), "no answer from ZooKeeper since") {
			v.Error(err)
		}
		if d := time.Since(start); d > session {
			v.Errorf("after %v", d)
		}
		v.Resume()
	})
}

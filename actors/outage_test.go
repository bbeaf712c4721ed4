package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server is killed and comes back within the session's time-out: holder and
// waiter both finish.
func TestWaitingProcessKilledServer(t *testing.T) {
	t.Parallel()
	b := lockOn(t, zktest.Own(t))
	one, two := b.locks(), b.locks()
	g := lock(b, one.Mutex(b.path))
	f := two.Mutex(b.path).Acquire(within(b))
	b.waitNodes(2)
	b.Stop(t)
	waitState(b, one, messages.SessionState_SUSPENDED)
	waitState(b, two, messages.SessionState_SUSPENDED)
	pending(b, f)
	late := one.Mutex(b.path).Acquire(context.Background())
	release := g.Release()
	b.Start(t)
	result(b, release)
	unlock(b, result(b, f))
	unlock(b, result(b, late))
	b.clean()
}

func TestConnectionCut(t *testing.T) {
	eachParallel(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		locks, others := connect(b.T, proxy.Addr()), b.locks()
		mu, other := locks.Mutex(b.path), others.Mutex(b.path)
		g := lock(b, mu)
		f := other.Acquire(within(b))
		b.waitNodes(2)
		h := mu.Acquire(within(b))
		b.waitNodes(3)
		cut := func() {
			proxy.Cut()
			waitState(b, locks, messages.SessionState_CONNECTED)
		}
		cut()
		if g.Err() != nil {
			b.Errorf("the grant does not outlive a cut connection: %v", g.Err())
		}
		pending(b, f, h)
		unlock(b, g)
		k := result(b, f)
		// The predecessor goes while the waiter is away.
		proxy.Refuse(true)
		proxy.Cut()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		unlock(b, k)
		pending(b, h)
		proxy.Refuse(false)
		last := result(b, h)
		if last.Session() != g.Session() {
			b.Error("the session was lost")
		}
		unlock(b, last)
	})
}

// A request that is made while the connection is away is done afterwards.
func TestAcquireWhileAway(t *testing.T) {
	eachParallel(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr())
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		proxy.Refuse(true)
		proxy.Cut()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		f := mu.Acquire(within(b))
		given := mu.Acquire(within(b))
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := mu.Lock(ctx)
		is(b, err, context.DeadlineExceeded)
		_, err = mu.Lock(within(b), actors.WithTimeout(30*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		_, err = mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		given.Cancel()
		release := g.Release()
		proxy.Refuse(false)
		result(b, release)
		unlock(b, result(b, f))
	})
}

// The server freezes, as a virtual machine does that is moved.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	b := lockOn(t, zktest.Own(t))
	locks := b.locks(func(cfg *actors.Config) { cfg.SessionTimeout = 6 * time.Second })
	mu := locks.Mutex(b.path)
	g := lock(b, mu)
	b.Freeze(t)
	closes(b, g.Done(), "the grant")
	f := mu.Acquire(within(b))
	b.Thaw(t)
	unlock(b, result(b, f))
	g.Release()
	b.clean()
}

// One of three servers goes, and with it the leader.
func TestEnsembleLosesLeader(t *testing.T) {
	b := ensemble(t)
	one, two := b.locks(), b.locks()
	g := lock(b, one.Mutex(b.path))
	f := two.Mutex(b.path).Acquire(within(b))
	b.waitNodes(2)
	leader := b.Leader(t)
	leader.Stop(t)
	b.passAround(4, 3, one.Mutex(b.path+"-other"), two.Mutex(b.path+"-other"))
	pending(b, f)
	if g.Err() != nil {
		b.Fatal(g.Err())
	}
	unlock(b, g)
	unlock(b, result(b, f))
	leader.Start(t)
	b.clean()
}

// An hour of virtual time with a lock that is held, and one that is waited for.
func TestLongHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		other := v.mutex()
		g := lock(v, mu)
		f := other.Acquire(context.Background())
		<-time.After(time.Hour)
		if g.Err() != nil || len(v.nodes()) != 2 {
			v.Errorf("%v; nodes %v", g.Err(), v.nodes())
		}
		pending(v, f)
		unlock(v, g)
		unlock(v, result(v, f))
		v.clean()
	})
}

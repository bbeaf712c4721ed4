package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server is killed, and starts again within the session timeout. The holder releases, and the
// waiter is granted.
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
	each(t, func(b *testLock) {
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
		// The predecessor goes while the waiter is disconnected.
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

// Requests without a connection are sent when it is back.
func TestAcquireWhileAway(t *testing.T) {
	each(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr())
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		proxy.Refuse(true)
		proxy.Cut()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		f := mu.Acquire(within(b))
		cancelled := mu.Acquire(within(b))
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := mu.Lock(ctx)
		is(b, err, context.DeadlineExceeded)
		_, err = mu.Lock(within(b), actors.WithTimeout(30*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		_, err = mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		cancelled.Cancel()
		release := g.Release()
		proxy.Refuse(false)
		result(b, release)
		unlock(b, result(b, f))
	})
}

// The server freezes, as during the migration of a virtual machine.
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

// The leader of three servers is stopped.
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

// A holder holds, and a waiter waits, for an hour of virtual time.
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

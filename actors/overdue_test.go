package actors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// A process that was paused, right after: the deadline has passed, and neither the
// bridge nor any timer of it has come to say so.

// stuck is a recipient that keeps whoever tells it something from going on.
type stuck struct{ entered, leave chan struct{} }

func newStuck() *stuck { return &stuck{make(chan struct{}, 10), make(chan struct{})} }

func (s *stuck) Tell(any) {
	s.entered <- struct{}{}
	<-s.leave
}

// withBridge gives locks whose bridge can be reached.
func (v *virtual) withBridge(configure ...func(*zkbridge.Config)) (*actors.Locks, *zkbridge.Bridge, func()) {
	v.Helper()
	system := host.NewSystem(nil, nil)
	cfg := zkbridge.Config{Servers: "embedded:1", SessionTimeout: session, Dial: v.Dial}
	for _, f := range configure {
		f(&cfg)
	}
	bridge, err := zkbridge.Open(system, cfg)
	must(v, err)
	must(v, bridge.Connected(within(v.T)))
	locks := actors.New(system, bridge, actors.Config{})
	return locks, bridge, func() {
		locks.Close()
		bridge.Close()
		system.Close()
	}
}

// block keeps the bridge from doing anything until the function is called.
func block(bridge *zkbridge.Bridge) (unblock func()) {
	s := newStuck()
	bridge.Ref().SendSubscribe(&messages.Subscribe{}, s) // it is told the state at once
	<-s.entered
	return sync.OnceFunc(func() {
		bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
		close(s.leave)
	})
}

func TestOverdue(t *testing.T) {
	bubble(t, func(v *virtual) {
		locks, bridge, end := v.withBridge()
		defer end()
		defer v.Resume()
		mu, me := locks.Mutex("/lock"), actors.WithOwner("me")
		g := lock(v, mu, me)
		reentered := lock(v, mu, me)
		ctx, seen := g.Context(v.Context()), g.Done()
		below, cancel := context.WithCancel(ctx)
		defer cancel()
		next := mu.Acquire(context.Background())
		lone := lock(v, locks.Mutex("/lone"))
		<-time.After(time.Second)
		if len(v.nodes()) != 2 {
			v.Fatalf("nodes %q", v.nodes())
		}
		unblock := block(bridge)
		defer unblock()
		v.Pause()
		deadline := locks.Session().Deadline
		<-time.After(time.Until(deadline) - 1)
		if s := locks.Session(); s.State != messages.SessionState_CONNECTED && s.State != messages.SessionState_SUSPENDED {
			v.Errorf("before the deadline: %+v", s)
		}
		if isClosed(g.Done()) || g.Err() != nil || ctx.Err() != nil {
			v.Errorf("before the deadline: %v, %v", g.Err(), ctx.Err())
		}
		<-time.After(1)

		if s := locks.Session(); s.State != messages.SessionState_LOST || s.ID != g.Session() || !s.Deadline.Equal(deadline) {
			v.Errorf("at the deadline: %+v", s)
		}
		if isClosed(seen) {
			v.Error("somebody has looked at the clock before")
		}
		is(v, ctx.Err(), context.Canceled)
		is(v, context.Cause(below), actors.ErrSessionLost)
		is(v, g.Err(), actors.ErrSessionLost)
		is(v, g.Verify(within(v)), actors.ErrSessionLost)
		closes(v, seen, "the grant")
		if lone := lone.Done(); !isClosed(lone) {
			v.Error("a grant that was not asked for its error goes on")
		}
		is(v, reentered.Context(v.Context()).Err(), context.Canceled)
		_, err := mu.Lock(within(v), me)
		is(v, err, actors.ErrSessionLost)
		is(v, failure(v, g.Release()), actors.ErrSessionLost)
		is(v, failure(v, reentered.Release()), actors.ErrSessionLost)
		is(v, failure(v, lone.Release()), actors.ErrSessionLost)
		<-time.After(time.Second) // for the lock to do what it would do
		pending(v, next)

		v.Resume()
		unblock()
		h := result(v, next)
		if h.Session() == g.Session() || h.Token().Compare(g.Token()) <= 0 || h.Err() != nil {
			v.Errorf("session %#x, token %v after %#x, %v: %v", h.Session(), h.Token(), g.Session(), g.Token(), h.Err())
		}
		unlock(v, h)
		unlock(v, lock(v, mu, me))
		v.expectClean()
	})
}

// An answer that comes in after somebody was told of the loss does not undo it.
func TestOverdueIsFinal(t *testing.T) {
	bubble(t, func(v *virtual) {
		locks, bridge, end := v.withBridge()
		defer end()
		g := lock(v, locks.Mutex("/lock"))
		unblock := block(bridge)
		defer unblock()
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline))
		is(v, g.Err(), actors.ErrSessionLost)
		v.Resume() // answers what it was asked
		<-time.After(10 * time.Millisecond)
		if s := locks.Session(); s.State != messages.SessionState_LOST {
			v.Errorf("%+v", s)
		}
		unblock()
		<-time.After(10 * time.Second)
		if s := locks.Session(); s.State != messages.SessionState_CONNECTED || s.ID == g.Session() {
			v.Errorf("%+v after %#x", s, g.Session())
		}
		g.Release() // outside of the bubble it cannot be dropped
		v.expectClean()
	})
}

// The deadline passes after Release was called and before the lock's actor hears of it.
func TestOverdueBehindRelease(t *testing.T) {
	bubble(t, func(v *virtual) {
		locks, _, end := v.withBridge()
		defer end()
		mu := locks.Mutex("/lock")
		g, next := lock(v, mu), mu.Acquire(context.Background())
		<-time.After(time.Second) // the next one has its node, and is in line
		s := newStuck()
		self := messages.LockRef{To: actors.LockRecipient(mu)}
		ask.Send(self.To, &messages.Acquire{RequestId: 1, Owner: "other", Try: true}, s)
		<-s.entered // the lock's actor stands still: it refuses
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline) - 1)
		release := g.Release()
		<-time.After(1)
		pending(v, next)
		close(s.leave)
		is(v, failure(v, release), actors.ErrSessionLost)
		pending(v, next)
		v.Resume()
		unlock(v, result(v, next))
		v.expectClean()
	})
}

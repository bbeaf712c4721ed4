package actors_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// testActor is an actor that acquires locks by messages.
type testActor struct {
	t      testing.TB
	system *actor.ActorSystem
	self   *actor.PID
	inbox  chan any
	// suspended counts the messages Suspended, which the inbox does not get.
	suspended atomic.Int32
}

// testActors returns n actors in a system of their own, and a configuration with which locks run in
// that system.
func testActors(t *testing.T, n int) (config func(*actors.Config), all []*testActor) {
	system := actor.NewActorSystem(withoutLog...)
	t.Cleanup(system.Shutdown)
	for range n {
		p := &testActor{t: t, system: system, inbox: make(chan any, 1000)}
		p.self = system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *messages.Granted, *messages.Refused, *messages.Released, *messages.Lost, *messages.Contended, *messages.RevokeRequested, *actor.DeadLetterResponse:
				p.inbox <- msg
			case *messages.Suspended: // which may come at any time
				p.suspended.Add(1)
			}
		}))
		t.Cleanup(p.stop)
		all = append(all, p)
	}
	return func(cfg *actors.Config) { cfg.System = system }, all
}

func (p *testActor) send(to *actor.PID, msg any) {
	p.system.Root.RequestWithCustomSender(to, msg, p.self)
}

// expectMessage waits for the next message, which must be a T.
func expectMessage[T any](p *testActor) T {
	p.t.Helper()
	msg, _ := receive(p.t, p.inbox, "a message")
	m, ok := msg.(T)
	if !ok {
		p.t.Fatalf("got %T %v", msg, msg)
	}
	return m
}

// refused waits for a Refused with the id and the reason.
func (p *testActor) refused(id uint64, why messages.Reason) *messages.Refused {
	p.t.Helper()
	m := expectMessage[*messages.Refused](p)
	if m.GetRequestId() != id || m.GetReason() != why {
		p.t.Errorf("got %v, want %d %v", m, id, why)
	}
	return m
}

// granted waits for a Granted with the id.
func (p *testActor) granted(id uint64) *messages.Granted {
	p.t.Helper()
	m := expectMessage[*messages.Granted](p)
	if m.GetRequestId() != id {
		p.t.Errorf("got %v, want a Granted of %d", m, id)
	}
	return m
}

// released waits for a Released with the id and the number of requests that the owner still holds
// by.
func (p *testActor) released(id uint64, still uint32) {
	p.t.Helper()
	if m := expectMessage[*messages.Released](p); m.GetRequestId() != id || m.GetStillHeld() != still {
		p.t.Errorf("got %v, want %d with %d still held", m, id, still)
	}
}

func pid(t testing.TB, mu handle) *actor.PID {
	t.Helper()
	pid, err := mu.PID()
	must(t, err)
	return pid
}

// stop stops the actor, and waits for its end.
func (p *testActor) stop() {
	p.t.Helper()
	must(p.t, p.system.Root.StopFuture(p.self).Wait())
}

// remoteActor is an actor at another address. It counts the watches of its end.
type remoteActor struct {
	testActor
	watches, unwatches atomic.Int32
	watcher            atomic.Pointer[actor.PID]
	ended              atomic.Bool // its system answers with dead letters
}

func (w *remoteActor) SendUserMessage(_ *actor.PID, msg any) {
	_, msg, sender := actor.UnwrapEnvelope(msg)
	if w.ended.Load() {
		w.system.Root.Send(sender, &actor.DeadLetterResponse{})
		return
	}
	w.inbox <- msg
}

func (w *remoteActor) SendSystemMessage(_ *actor.PID, msg any) {
	switch msg := msg.(type) {
	case *actor.Watch:
		w.watcher.Store(msg.Watcher)
		w.watches.Add(1)
	case *actor.Unwatch:
		w.unwatches.Add(1)
	}
}

func (w *remoteActor) Stop(*actor.PID) {}

// newRemoteActor returns a remote actor, and a configuration with which locks run in a system that
// knows it.
func newRemoteActor(b *testLock, id string) (func(*actors.Config), *remoteActor) {
	config, all := testActors(b.T, 1)
	w := &remoteActor{testActor: testActor{t: b, system: all[0].system, self: actor.NewPID("peer:1", id), inbox: make(chan any, 1000)}}
	w.system.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) { return w, pid.Equal(w.self) })
	return config, w
}

// blockedRecipient blocks the senders of messages until leave is closed.
type blockedRecipient struct{ entered, leave chan struct{} }

func newBlockedRecipient() *blockedRecipient {
	return &blockedRecipient{make(chan struct{}, 10), make(chan struct{})}
}

func (s *blockedRecipient) Tell(any) {
	s.entered <- struct{}{}
	<-s.leave
}

// pauseBridge blocks the bridge's actor until the returned function is called.
func pauseBridge(bridge *zkbridge.Bridge) (resume func()) {
	s := newBlockedRecipient()
	bridge.Ref().SendSubscribe(&messages.Subscribe{}, s) // which sends the state at once
	<-s.entered
	return sync.OnceFunc(func() {
		bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
		close(s.leave)
	})
}

package locktest

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// OwnerActor is an actor that acquires locks by messages.
type OwnerActor struct {
	T      testing.TB
	System *actor.ActorSystem
	Self   *actor.PID
	Inbox  chan any
	// Suspended counts the messages Suspended, which the inbox does not get.
	Suspended atomic.Int32
}

// OwnerActors returns n actors in a system of their own, and a configuration with which locks run
// in that system.
func OwnerActors(t *testing.T, n int) (config func(*actors.Config), all []*OwnerActor) {
	system := actor.NewActorSystem(WithoutLog...)
	t.Cleanup(system.Shutdown)
	for range n {
		p := &OwnerActor{T: t, System: system, Inbox: make(chan any, 1000)}
		p.Self = system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *messages.Granted, *messages.Refused, *messages.Released, *messages.Lost, *messages.Contended, *messages.RevokeRequested, *actor.DeadLetterResponse:
				p.Inbox <- msg
			case *messages.Suspended: // which may come at any time
				p.Suspended.Add(1)
			}
		}))
		t.Cleanup(p.Stop)
		all = append(all, p)
	}
	return func(cfg *actors.Config) { cfg.System = system }, all
}

// Send sends a message from the actor.
func (p *OwnerActor) Send(to *actor.PID, msg any) {
	p.System.Root.RequestWithCustomSender(to, msg, p.Self)
}

// ExpectMessage waits for the next message, which must be a T.
func ExpectMessage[T any](p *OwnerActor) T {
	p.T.Helper()
	msg, _ := Receive(p.T, p.Inbox, "a message")
	m, ok := msg.(T)
	if !ok {
		p.T.Fatalf("got %T %v", msg, msg)
	}
	return m
}

// Refused waits for a Refused with the id and the reason.
func (p *OwnerActor) Refused(id uint64, why messages.Reason) *messages.Refused {
	p.T.Helper()
	m := ExpectMessage[*messages.Refused](p)
	if m.GetRequestId() != id || m.GetReason() != why {
		p.T.Errorf("got %v, want %d %v", m, id, why)
	}
	return m
}

// Granted waits for a Granted with the id.
func (p *OwnerActor) Granted(id uint64) *messages.Granted {
	p.T.Helper()
	m := ExpectMessage[*messages.Granted](p)
	if m.GetRequestId() != id {
		p.T.Errorf("got %v, want a Granted of %d", m, id)
	}
	return m
}

// Released waits for a Released with the id and the number of requests that the owner still holds
// by.
func (p *OwnerActor) Released(id uint64, still uint32) {
	p.T.Helper()
	if m := ExpectMessage[*messages.Released](p); m.GetRequestId() != id || m.GetStillHeld() != still {
		p.T.Errorf("got %v, want %d with %d still held", m, id, still)
	}
}

// PID returns the PID of the lock's actor.
func PID(t testing.TB, mu Handle) *actor.PID {
	t.Helper()
	pid, err := mu.PID()
	Must(t, err)
	return pid
}

// Messages at which actors panic, which expect contents.
var (
	NoCreated = (*messages.Created)(nil)
	NoGranted = (*messages.Granted)(nil)
)

// Panics has the actor of a lock panic, by a message that lacks the contents which the actor reads.
func (p *OwnerActor) Panics(mu Handle, message any) {
	p.T.Helper()
	p.System.Root.Send(PID(p.T, mu), message)
}

// Stop stops the actor, and waits for its end.
func (p *OwnerActor) Stop() {
	p.T.Helper()
	Must(p.T, p.System.Root.StopFuture(p.Self).Wait())
}

// RemoteOwner is an actor at another address. It counts the watches of its end.
type RemoteOwner struct {
	OwnerActor
	Watches, Unwatches atomic.Int32
	Watcher            atomic.Pointer[actor.PID]
	Ended              atomic.Bool // its system answers with dead letters
}

// SendUserMessage has the actor get a message. One that has ended answers as its system does.
func (w *RemoteOwner) SendUserMessage(_ *actor.PID, msg any) {
	_, msg, sender := actor.UnwrapEnvelope(msg)
	if w.Ended.Load() {
		w.System.Root.Send(sender, &actor.DeadLetterResponse{})
		return
	}
	w.Inbox <- msg
}

// SendSystemMessage counts the watches.
func (w *RemoteOwner) SendSystemMessage(_ *actor.PID, msg any) {
	switch msg := msg.(type) {
	case *actor.Watch:
		w.Watcher.Store(msg.Watcher)
		w.Watches.Add(1)
	case *actor.Unwatch:
		w.Unwatches.Add(1)
	}
}

// Stop does nothing.
func (w *RemoteOwner) Stop(*actor.PID) {}

// NewRemoteOwner returns a remote actor, and a configuration with which locks run in a system that
// knows it.
func NewRemoteOwner(b *Fixture, id string) (func(*actors.Config), *RemoteOwner) {
	config, all := OwnerActors(b.T, 1)
	w := &RemoteOwner{OwnerActor: OwnerActor{T: b, System: all[0].System, Self: actor.NewPID("peer:1", id), Inbox: make(chan any, 1000)}}
	w.System.ProcessRegistry.RegisterAddressResolver(func(pid *actor.PID) (actor.Process, bool) { return w, pid.Equal(w.Self) })
	return config, w
}

// BlockedRecipient blocks the senders of messages until Leave is closed.
type BlockedRecipient struct{ Entered, Leave chan struct{} }

// NewBlockedRecipient returns a recipient that blocks up to ten senders.
func NewBlockedRecipient() *BlockedRecipient {
	return &BlockedRecipient{make(chan struct{}, 10), make(chan struct{})}
}

// Tell blocks until Leave is closed.
func (s *BlockedRecipient) Tell(any) {
	s.Entered <- struct{}{}
	<-s.Leave
}

// PauseBridge blocks the bridge's actor until the returned function is called.
func PauseBridge(bridge *zkbridge.Bridge) (resume func()) {
	s := NewBlockedRecipient()
	bridge.Ref().SendSubscribe(&messages.Subscribe{}, s) // which sends the state at once
	<-s.Entered
	return sync.OnceFunc(func() {
		bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
		close(s.Leave)
	})
}

// FreezeActors keeps the actors of a process from handling messages until the returned function is
// called: it blocks all goroutines that serve mailboxes.
func FreezeActors(system *host.System) (unfreeze func()) {
	frozen := make(chan struct{})
	block := func(*host.Ref) host.Actor { return blockingActor{frozen} }
	var blockers []*host.Ref
	for range max(4, 2*runtime.GOMAXPROCS(0)) {
		blockers = append(blockers, system.Start("blocker", block))
	}
	if ref, err := system.SpawnPriority("blocker", block); err == nil {
		blockers = append(blockers, ref)
	}
	for _, ref := range blockers {
		ref.Tell("block")
	}
	return func() {
		close(frozen)
		for _, ref := range blockers {
			ref.Stop()
		}
	}
}

// blockingActor blocks the goroutine that serves it.
type blockingActor struct{ frozen chan struct{} }

func (b blockingActor) Receive(ask.Recipient, any) { <-b.frozen }
func (b blockingActor) Stopped(any)                {}
func (b blockingActor) Refuse(ask.Recipient, any)  {}

// WithoutLog are the options of an actor system without a log.
var WithoutLog = []actor.ConfigOption{
	actor.WithDeadLetterThrottleInterval(time.Millisecond), // for which a goroutine of the system waits at its end
	actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
}

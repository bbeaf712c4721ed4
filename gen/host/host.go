// Package host runs generated handlers as protoactor actors, with the guarantees
// that protoactor leaves to its users: a message to a stopping actor is answered,
// not dropped; a panic stops the actor and tells it so, it never restarts without
// its memory; mailboxes are served by a few goroutines instead of one per wake-up.
package host

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// An Actor handles the messages of one mailbox. Its methods are called by one
// goroutine at a time and must not block.
type Actor interface {
	// Receive handles a message. from is whom to answer; nil if the sender is
	// not known.
	Receive(from ask.Recipient, msg any)
	// Stopped is called once, when nothing will be received any more. failure is
	// nil after Stop, and what Receive panicked with otherwise.
	Stopped(failure any)
	// Refuse answers a message that came too late. It is called after Stopped only.
	Refuse(from ask.Recipient, msg any)
}

// System is where actors run.
type System struct {
	// Actors is the protoactor system.
	Actors *actor.ActorSystem
	// Logger hears of failed actors.
	Logger *slog.Logger

	dispatcher *dispatcher
	owned      bool
	closing    sync.Once
}

// NewSystem makes a System on top of actors, which the caller goes on owning. With
// nil it makes a protoactor system of its own (about 3 MB) that logs to logger.
func NewSystem(actors *actor.ActorSystem, logger *slog.Logger) *System {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &System{Actors: actors, Logger: logger, dispatcher: newDispatcher()}
	if actors == nil {
		s.owned = true
		s.Actors = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	}
	return s
}

// Close ends the goroutines that serve mailboxes; a message that comes later is
// still served, by a goroutine of its own. Stop the actors first. Close may be
// called more than once.
func (s *System) Close() {
	s.closing.Do(func() {
		s.dispatcher.close()
		if s.owned {
			s.Actors.Shutdown()
		}
	})
}

// Spawn starts the actor that make returns. The name must be unique in the
// protoactor system; spawn the same name from one place only.
func (s *System) Spawn(name string, make func(self *Ref) Actor) (*Ref, error) {
	h := &hosted{system: s}
	ref := &Ref{mailbox: newMailbox(h), pid: actor.NewPID(s.Actors.ProcessRegistry.Address, name)}
	props := actor.PropsFromProducer(func() actor.Actor { return h },
		actor.WithMailbox(func() actor.Mailbox { return ref.mailbox }),
		actor.WithDispatcher(s.dispatcher),
	)
	h.handler = make(ref)
	if _, err := s.Actors.Root.SpawnNamed(props, name); err != nil {
		return nil, fmt.Errorf("host: spawn %q: %w", name, err)
	}
	return ref, nil
}

// Ref is a hosted actor as others see it.
type Ref struct {
	mailbox actor.Mailbox
	pid     *actor.PID
}

// Tell puts a message into the actor's mailbox.
func (r *Ref) Tell(msg any) { r.mailbox.PostUserMessage(msg) }

// PID is the actor's address for protoactor.
func (r *Ref) PID() *actor.PID { return r.pid }

// Stop makes the actor stop. What is in its mailbox by then, or comes later, is
// answered by Refuse. It does not block.
func (r *Ref) Stop() { r.mailbox.PostSystemMessage(&actor.Stop{}) }

// Sender is a protoactor actor as a recipient of answers.
type Sender struct {
	System *actor.ActorSystem
	PID    *actor.PID
	// Self is who answers.
	Self *actor.PID
}

// Tell sends msg to the actor, with Self as the sender.
func (s Sender) Tell(msg any) { s.System.Root.RequestWithCustomSender(s.PID, msg, s.Self) }

// hosted is the protoactor actor around an Actor.
type hosted struct {
	system  *System
	handler Actor
	stopped bool
}

// Receive implements actor.Actor.
func (h *hosted) Receive(c actor.Context) {
	defer func() {
		if failure := recover(); failure != nil {
			h.fail(c, failure)
		}
	}()
	switch msg := c.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Restarting:
	case *actor.Stopped:
		h.stop(nil)
	case *ask.Call:
		h.handler.Receive(msg.From, msg.Message)
	default:
		if c.Sender() == nil {
			h.handler.Receive(nil, msg)
			return
		}
		h.handler.Receive(Sender{h.system.Actors, c.Sender(), c.Self()}, msg)
	}
}

func (h *hosted) fail(c actor.Context, failure any) {
	h.system.Logger.Error("actor failed and is stopped", "actor", c.Self().GetId(),
		"failure", failure, "message", typeOf(c.Message()), "stack", string(debug.Stack()))
	h.stop(failure)
	c.Stop(c.Self())
}

func typeOf(msg any) string {
	if call, ok := msg.(*ask.Call); ok {
		msg = call.Message
	}
	return fmt.Sprintf("%T", msg)
}

func (h *hosted) stop(failure any) {
	if h.stopped {
		return
	}
	h.stopped = true
	h.handler.Stopped(failure)
}

func (h *hosted) refuse(envelope any) {
	_, msg, sender := actor.UnwrapEnvelope(envelope)
	switch call, ok := msg.(*ask.Call); {
	case ok:
		h.handler.Refuse(call.From, call.Message)
	case sender != nil:
		h.handler.Refuse(Sender{System: h.system.Actors, PID: sender}, msg)
	default:
		h.handler.Refuse(nil, msg)
	}
}

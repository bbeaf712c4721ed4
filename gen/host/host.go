// Package host runs generated handlers as protoactor actors, with the guarantees
// that protoactor leaves to its users: a message to a stopping actor is answered,
// not dropped; a panic stops the actor and tells it so, it never restarts without
// its memory; mailboxes are served by a few goroutines instead of one per wake-up.
package host

import (
	"log/slog"
	"runtime"
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

// A Collector is an Actor that puts off what its messages give it to do, so as to do it
// for several at once. Flush is called when there is no further message at the moment,
// and now and then while there are.
type Collector interface {
	Flush()
}

// System is where actors run.
type System struct {
	// Actors is the protoactor system.
	Actors *actor.ActorSystem
	// Logger hears of failed actors.
	Logger *slog.Logger

	dispatcher *dispatcher
	priority   *dispatcher // of actors that SpawnPriority has started
	owned      bool
	closing    sync.Once
}

// NewSystem makes a System on top of actors, which the caller goes on owning. With
// nil it makes a protoactor system of its own (about 3 MB) that logs to logger.
func NewSystem(actors *actor.ActorSystem, logger *slog.Logger) *System {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &System{Actors: actors, Logger: logger, dispatcher: newDispatcher(max(4, 2*runtime.GOMAXPROCS(0))), priority: newDispatcher(1)}
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
		s.priority.close()
		if s.owned {
			s.Actors.Shutdown()
		}
	})
}

// Spawn starts the actor that make returns, and registers it. The name must be unique in
// the protoactor system.
func (s *System) Spawn(name string, make func(self *Ref) Actor) (*Ref, error) {
	return s.spawn(&Ref{system: s, name: name}, make)
}

// SpawnPriority is Spawn for an actor on which the others of the System depend, such as
// the owner of a connection. It is served by a goroutine that only serves such actors, so
// that its messages never wait behind those of other actors.
func (s *System) SpawnPriority(name string, make func(self *Ref) Actor) (*Ref, error) {
	return s.spawn(&Ref{system: s, name: name, priority: true}, make)
}

func (s *System) spawn(r *Ref, make func(self *Ref) Actor) (*Ref, error) {
	if err := r.Register(); err != nil {
		return nil, err
	}
	r.start(make(r))
	return r, nil
}

// Start is Spawn for one of many actors, most of which nobody knows by PID: it is not
// registered, which costs more memory than all else here.
func (s *System) Start(name string, make func(self *Ref) Actor) *Ref {
	r := &Ref{system: s, name: name}
	r.start(make(r))
	return r
}

// Sender is a protoactor actor as a recipient of answers.
type Sender struct {
	System *actor.ActorSystem
	PID    *actor.PID
	// Self is who answers.
	Self *actor.PID
}

// Tell sends msg to the actor, with Self as the sender.
func (s Sender) Tell(msg any) { s.System.Root.RequestWithCustomSender(s.PID, msg, s.Self) }

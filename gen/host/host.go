// Package host runs generated handlers as protoactor actors, with guarantees that protoactor
// leaves to its users:
//
//   - An actor answers messages that arrive after its stop, by [Actor.Refuse]. protoactor drops
//     them.
//   - A panic stops the actor, which learns of it by [Actor.Stopped]. protoactor restarts an
//     actor without its state.
//   - A fixed number of goroutines serves all mailboxes. protoactor starts one per wake-up.
//   - A logger that blocks does not stop the actors: see [BoundLogger].
//
// Files in reading order: host.go has [Actor] and [System]; mailbox.go and dispatcher.go queue
// messages and serve them; ref.go has [Ref], the address of an actor, and its life; watch.go has
// the identities of senders, [Ref.Watch] and [Ref.Alias]; logger.go has the log, and registry.go
// the names.
package host

import (
	"context"
	"log/slog"
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// An Actor handles the messages of one mailbox. One goroutine at a time calls its methods,
// which must not block.
type Actor interface {
	// Receive handles a message. from is the recipient of answers, or nil if the sender is
	// unknown.
	Receive(from ask.Recipient, msg any)
	// Stopped is called once, after the last Receive. failure is nil after Stop, and
	// otherwise the value of the panic that stopped the actor.
	Stopped(failure any)
	// Refuse answers a message that arrived after the stop. It is called after Stopped only.
	Refuse(from ask.Recipient, msg any)
}

// A Collector is an Actor that defers work, so as to do the work of several messages at once.
type Collector interface {
	// Flush does the deferred work. It is called when the mailbox is empty, and after every
	// 64 messages while it is not.
	Flush()
}

// System runs actors.
type System struct {
	// Actors is the protoactor system.
	Actors *actor.ActorSystem
	// Logger logs the panics of actors.
	Logger *slog.Logger

	dispatcher *dispatcher
	priority   *dispatcher // serves the actors of SpawnPriority
	owned      bool        // NewSystem made Actors
	closing    sync.Once
}

// NewSystem returns a System that runs its actors in the protoactor system actors, which
// the caller still has to shut down. If actors is nil, it starts a protoactor system of its own
// that logs to logger, from WARN up. A nil logger discards the log. See [BoundLogger] for one that blocks.
func NewSystem(actors *actor.ActorSystem, logger *slog.Logger) *System {
	logger = BoundLogger(logger)
	s := &System{Actors: actors, Logger: logger, dispatcher: newDispatcher(max(4, 2*runtime.GOMAXPROCS(0))), priority: newDispatcher(1)}
	if actors == nil {
		s.owned = true
		s.Actors = newActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(warnings{logger.Handler()}) }))
	}
	return s
}

// warnings is the log of a protoactor system, which reports its own start and end at INFO.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(all []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(all)} }

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// Close ends the goroutines that serve mailboxes, and waits for them. Stop the actors first.
// A message that arrives later is served by a goroutine of its own. Close may be called more
// than once.
func (s *System) Close() {
	s.closing.Do(func() {
		s.dispatcher.close()
		s.priority.close()
		if s.owned {
			s.Actors.Shutdown()
		}
	})
}

// Spawn registers a Ref under the name and starts the actor that make returns for it. The
// error is actor.ErrNameExists if the protoactor system has the name already. Spawn blocks as
// long as make does.
func (s *System) Spawn(name string, make func(self *Ref) Actor) (*Ref, error) {
	return s.spawn(&Ref{system: s, dispatcher: s.dispatcher, named: plainName(name)}, make)
}

// SpawnPriority is Spawn for an actor that the others of the System depend on, such as the
// owner of a connection. A goroutine that serves only such actors serves it, so that its
// messages never wait behind those of other actors.
func (s *System) SpawnPriority(name string, make func(self *Ref) Actor) (*Ref, error) {
	return s.spawn(&Ref{system: s, dispatcher: s.priority, named: plainName(name)}, make)
}

func (s *System) spawn(r *Ref, make func(self *Ref) Actor) (*Ref, error) {
	if err := r.Register(); err != nil {
		return nil, err
	}
	r.start(make(r))
	return r, nil
}

// Start is Spawn without registration, which takes more memory than the rest of an actor. The
// actor has no PID until [Ref.Register].
func (s *System) Start(name string, make func(self *Ref) Actor) *Ref {
	return s.StartNamed(plainName(name), make)
}

// StartNamed is Start for an actor whose name is rarely needed, such as one of many.
func (s *System) StartNamed(named Named, make func(self *Ref) Actor) *Ref {
	r := &Ref{system: s, dispatcher: s.dispatcher, named: named}
	r.start(make(r))
	return r
}

// Named says the name of an actor. Only its PID and the log need it, so that no string is kept.
type Named interface {
	// Name returns the name, always the same. Any goroutine may call it.
	Name() string
}

// plainName is a name as a Named.
type plainName string

// Name implements Named.
func (n plainName) Name() string { return string(n) }

// Sender is the protoactor actor that sent a message, as the recipient of answers.
type Sender struct {
	System *actor.ActorSystem
	PID    *actor.PID
	// Self is the sender of the answers.
	Self *actor.PID
}

// Tell sends msg to the actor, with Self as the sender. It never blocks.
func (s Sender) Tell(msg any) { s.System.Root.RequestWithCustomSender(s.PID, msg, s.Self) }

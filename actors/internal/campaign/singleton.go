package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/messages"
)

// SingletonConfig is what the actors of one Singleton have in common.
type SingletonConfig struct {
	// Path is the path of the election.
	Path string
	// Lock returns the address of the lock's actor, or why there is none.
	Lock func() (*actor.PID, error)
	// System is the actor system of the lock's actor.
	System *actor.ActorSystem
	// Lost reports whether the session of an epoch is lost, by the clock.
	Lost func(epoch uint64) bool
	// Child returns the props of the child of a term.
	Child func(*Term) *actor.Props
	// Data is the data of the participant's nodes.
	Data []byte
	// ResignOnRevoke and StopOnSuspended have the child stopped when another client asks for the
	// lock, and when the connection is lost.
	ResignOnRevoke, StopOnSuspended bool
	// Log gets the failures.
	Log *slog.Logger
}

// Resign asks a Singleton to stop its child.
type Resign struct{}

// singleton is an actor that has a child while it holds the lock. The child has terminated before
// the request of its term is released, and before the next request is sent.
type singleton struct {
	*SingletonConfig
	messages.IgnoreOwner[actor.Context] // Released and Contended

	lock     *actor.PID // the actor that has the request; nil before the first
	request  uint64     // of the present term or wait
	child    *actor.PID // nil while the request is not granted
	term     *Term      // nil without a child
	stopping bool       // the child was told to stop; false without a child
	lost     bool       // the grant is over; false without a child
	ending   bool       // protoactor stops or restarts the singleton, with its child
	failed   int        // requests in a row; 0 with a child
}

// Singleton returns the props of an actor that has a child while it holds the lock.
func Singleton(c *SingletonConfig) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &singleton{SingletonConfig: c} })
}

// retry is the singleton's message to itself after a pause.
type retry struct{ request uint64 }

// Receive implements actor.Actor.
func (s *singleton) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		s.acquire(ctx)
	case *actor.Stopping, *actor.Restarting:
		s.ending = true
		if s.child == nil {
			s.withdraw(ctx)
		} else {
			s.term.end(ErrResigned)
		}
	case *actor.Terminated:
		if s.child != nil && s.child.Equal(msg.GetWho()) {
			s.childEnded(ctx)
		}
	case retry:
		if msg.request == s.request {
			s.acquire(ctx)
		}
	case Resign, *Resign:
		s.stopChild(ctx, ErrResigned)
	default:
		messages.DispatchOwner(s, ctx, ctx.Message(), nil)
	}
}

// requests numbers the requests of all singletons. A restarted singleton has the PID of before, and
// must not take the answers to earlier requests for its own.
var requests atomic.Uint64

// acquire sends the next request. A Request, unlike a Send, has a sender that the lock can answer.
func (s *singleton) acquire(ctx actor.Context) {
	lock, err := s.Lock()
	if err == nil && ctx.ActorSystem() != s.System {
		err = fmt.Errorf("singleton in an actor system other than Config.System: %w", messages.Reason_INVALID)
	}
	if err != nil {
		s.giveUp(ctx, err)
		return
	}
	s.lock, s.request = lock, requests.Add(1)
	ctx.Request(lock, &messages.Acquire{RequestId: s.request, Data: s.Data, Revocable: s.ResignOnRevoke})
}

// withdraw ends the request in whatever state it is. The lock ignores it for one that is over.
func (s *singleton) withdraw(ctx actor.Context) {
	if s.lock != nil {
		ctx.Request(s.lock, &messages.Cancel{RequestId: s.request})
	}
}

// stopChild ends the term of the child with a cause, and stops the child.
func (s *singleton) stopChild(ctx actor.Context, why error) {
	if s.child != nil && !s.stopping {
		s.stopping = true
		s.term.end(why)
		ctx.Stop(s.child)
	}
}

// childEnded resigns and queues again.
func (s *singleton) childEnded(ctx actor.Context) {
	lost := s.lost
	s.term.end(ErrResigned)
	s.child, s.term, s.stopping, s.lost = nil, nil, false, false
	switch {
	case s.ending:
		s.withdraw(ctx)
		return
	case !lost:
		ctx.Request(s.lock, &messages.Release{RequestId: s.request})
	}
	s.acquire(ctx)
}

func (s *singleton) giveUp(ctx actor.Context, err error) {
	if !errors.Is(err, messages.Reason_CLOSED) && !errors.Is(err, messages.Reason_DRAINING) {
		s.Log.Error("singleton cannot take part in the election and stops", "path", s.Path, "pid", ctx.Self().Address+"/"+ctx.Self().Id, "error", err,
			"do", "mend the cause, and spawn the singleton again")
	}
	s.lock, s.request = nil, 0
	ctx.Stop(ctx.Self())
}

// Granted implements messages.OwnerHandler.
func (s *singleton) Granted(ctx actor.Context, msg *messages.Granted) {
	if msg.RequestId == s.request && !s.ending {
		s.failed = 0
		s.term = NewTerm(context.Background(), s.Path, s.SingletonConfig.Lost, msg)
		s.child = ctx.Spawn(s.Child(s.term))
	}
}

// Refused implements messages.OwnerHandler. It ignores the answer to a Release: the bridge deletes
// the node, and logs if it cannot.
func (s *singleton) Refused(ctx actor.Context, msg *messages.Refused) {
	switch {
	case msg.RequestId != s.request || s.ending:
	case errors.Is(msg, messages.Reason_STOPPED): // the actor was idle
		s.acquire(ctx)
	case !IsTemporary(msg):
		s.giveUp(ctx, msg)
	default:
		pause := Pause(s.failed)
		s.failed++
		s.Log.Warn(Retrying, "path", s.Path, "error", msg, "after", pause)
		system, self, again := ctx.ActorSystem(), ctx.Self(), retry{s.request}
		time.AfterFunc(pause, func() { system.Root.Send(self, again) })
	}
}

// Lost implements messages.OwnerHandler.
func (s *singleton) Lost(ctx actor.Context, msg *messages.Lost) {
	if msg.RequestId == s.request {
		s.lost = true
		s.stopChild(ctx, msg)
	}
}

// Suspended implements messages.OwnerHandler.
func (s *singleton) Suspended(ctx actor.Context, msg *messages.Suspended) {
	if msg.RequestId == s.request && s.StopOnSuspended {
		s.stopChild(ctx, messages.Reason_DISCONNECTED)
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (s *singleton) RevokeRequested(ctx actor.Context, msg *messages.RevokeRequested) {
	if msg.RequestId == s.request && s.ResignOnRevoke {
		s.stopChild(ctx, ErrRevoked)
	}
}

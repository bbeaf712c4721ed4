package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/campaign"
)

// Resign asks a Singleton to stop its child, to resign and to queue again, at the end. It has no
// effect while the Singleton does not lead.
type Resign = campaign.Resign

// SingletonTerm is the time for which a Singleton leads, for its child. Any goroutine may use it.
type SingletonTerm struct{ term *campaign.Term }

// Token returns the fencing token of the term, which is greater than those of all earlier terms of
// all participants. The child sends it with every write.
func (t *SingletonTerm) Token() Token { return TokenOf(t.term.Granted) }

// Err returns nil while the term lasts, to the knowledge of this process. The child asks it before it
// handles a message: it may have been paused for so long that another participant leads. It looks at
// the clock, so that it returns the loss of the session before the message that stops the child has
// arrived. Afterwards errors.Is finds ErrSessionLost, ErrNodeDeleted or another reason of a loss,
// ErrRevoked, ErrSuspended, or ErrResigned. It does not block, and cannot know of a pause that comes
// right after the call.
func (t *SingletonTerm) Err() error { return t.term.Err() }

// Context returns a context for the work of the child, which ends when the child is to stop: at the
// latest when the term is over. Its cause is the Err of the term, and its own Err looks at the clock.
func (t *SingletonTerm) Context() context.Context { return t.term.Context() }

// Singleton returns the props of an actor that takes part in the election and has one child while
// it leads: of all actors that the processes spawn from such props, at most one has a child. child
// returns the props of the child for a term. Spawn the actor in Config.System:
//
//	props := election.Singleton(func(term *actors.SingletonTerm) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &scheduler{term: term} })
//	})
//	system.Root.Spawn(props)
//
// The child asks term.Err before each message, and sends term.Token with each write.
//
// The lock is released only after the child has terminated. The actor stops the child
//   - at once when the term is lost, with the session or with the node. Another participant may lead
//     before the child has terminated: SingletonTerm.Err tells the child, and the token protects
//     resources from it;
//   - when the actor receives Resign;
//   - when another client asks the leader to resign, with ResignOnRevoke, and when the connection is
//     lost, with Config.StopOnSuspended;
//   - when the actor itself is stopped, or restarted by its supervisor.
//
// After a child that has terminated, also by itself, the actor queues again, at the end. A child
// that shall be the last stops its parent: ctx.Stop(ctx.Parent()). The actor supervises the child
// as every parent does: a child that is restarted stays in its term.
//
// As a Campaign it repeats requests that failed for a time, and outlives the loss of the session.
// After a final error it stops itself, and logs the error unless that is ErrClosed or ErrDraining.
func (e *Election) Singleton(child func(*SingletonTerm) *actor.Props) *actor.Props {
	h := &e.lock
	return campaign.Singleton(&campaign.SingletonConfig{
		Path:            e.Path(),
		Lock:            h.PID,
		System:          h.manager.ActorSystem(),
		Lost:            h.manager.Session.Lost,
		Child:           func(term *campaign.Term) *actor.Props { return child(&SingletonTerm{term}) },
		Data:            e.id,
		ResignOnRevoke:  e.resignOnRevoke,
		StopOnSuspended: h.manager.StopOnSuspended,
		Log:             h.manager.Log,
	})
}

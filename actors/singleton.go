package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/messages"
)

// Resign asks a Singleton to stop its child, to resign and to queue again, at the end. It has no
// effect while the Singleton does not lead.
type Resign = campaign.Resign

// Singleton returns the props of an actor that takes part in the election and has one child while
// it leads: of all actors that the processes spawn from such props, at most one has a child. child
// returns the props of the child for a term with this token. Spawn the actor in Config.System:
//
//	props := election.Singleton(func(token actors.Token) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &scheduler{token: token} })
//	})
//	system.Root.Spawn(props)
//
// The lock is released only after the child has terminated. The actor stops the child
//   - at once when the term is lost, with the session or with the node. Another participant may lead
//     before the child has terminated: the token protects resources from the child then;
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
func (e *Election) Singleton(child func(Token) *actor.Props) *actor.Props {
	h := &e.lock
	return campaign.Singleton(&campaign.SingletonConfig{
		Path:            e.Path(),
		Lock:            h.PID,
		System:          h.manager.ActorSystem(),
		Child:           func(granted *messages.Granted) *actor.Props { return child(TokenOf(granted)) },
		Data:            e.id,
		ResignOnRevoke:  e.resignOnRevoke,
		StopOnSuspended: h.manager.StopOnSuspended,
		Log:             h.manager.Log,
	})
}

package main

import (
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// worker is an actor that holds the lock several times. It never blocks: it sends Acquire and
// Release, and continues when it receives the answer.
type worker struct {
	name    string
	turns   int           // number of acquires that are left
	cancels bool          // it cancels its request
	stops   bool          // it stops while it holds the lock
	holds   chan<- string // if not nil, receives the worker's name when it holds, and the worker never releases

	lock     *actor.PID
	out      *slog.Logger
	finished chan<- string
	request  uint64 // id of the present request
}

// A new message of service Owner is a compile error here until worker handles it.
var _ messages.OwnerHandler[actor.Context] = (*worker)(nil)

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		w.acquire(ctx)
		return
	}
	messages.DispatchOwner(w, ctx, ctx.Message(), nil)
}

// acquire uses Request, because a message sent by Send has no sender that the lock could answer.
func (w *worker) acquire(ctx actor.Context) {
	w.request++
	ctx.Request(w.lock, &messages.Acquire{RequestId: w.request})
	if w.cancels {
		ctx.Request(w.lock, &messages.Cancel{RequestId: w.request})
	}
}

// Granted implements messages.OwnerHandler.
func (w *worker) Granted(ctx actor.Context, msg *messages.Granted) {
	w.out.Info(fmt.Sprintf("%s holds the lock, token %v", w.name, actors.TokenOf(msg)))
	if w.stops {
		w.finish(ctx, "stops without a release")
		return
	}
	if w.holds != nil {
		w.holds <- w.name
		return
	}
	ctx.Request(w.lock, &messages.Release{RequestId: msg.RequestId})
}

// Released implements messages.OwnerHandler.
func (w *worker) Released(ctx actor.Context, _ *messages.Released) {
	w.turns--
	if w.turns > 0 {
		w.acquire(ctx)
		return
	}
	w.finish(ctx, "has finished")
}

// Refused implements messages.OwnerHandler.
func (w *worker) Refused(ctx actor.Context, msg *messages.Refused) {
	w.finish(ctx, "does not get the lock: "+msg.Error())
}

// Lost implements messages.OwnerHandler.
func (w *worker) Lost(ctx actor.Context, msg *messages.Lost) {
	w.finish(ctx, "has lost the lock: "+msg.Error())
}

// Suspended implements messages.OwnerHandler. The worker still holds the lock.
func (w *worker) Suspended(actor.Context, *messages.Suspended) {}

// RevokeRequested implements messages.OwnerHandler. The worker releases soon in any case.
func (w *worker) RevokeRequested(actor.Context, *messages.RevokeRequested) {}

// Contended implements messages.OwnerHandler. The lock sends it only after notify_contended.
func (w *worker) Contended(actor.Context, *messages.Contended) {}

func (w *worker) finish(ctx actor.Context, how string) {
	w.out.Info(w.name + " " + how)
	w.finished <- w.name
	ctx.Stop(ctx.Self())
}

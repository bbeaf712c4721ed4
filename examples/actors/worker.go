package main

import (
	"log"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// worker is an actor that holds the lock several times. It never blocks: it tells the
// lock what it wants, and goes on when the lock tells it what became of that.
type worker struct {
	name   string
	turns  int
	fickle bool          // cancels its request
	leaves bool          // stops while it holds; the lock takes the grant back
	keeps  chan<- string // if not nil, it does not release; it says here that it holds

	lock     *actor.PID
	say      *log.Logger
	finished chan<- string
	request  uint64 // our number for the request in hand
}

// A message that is new to service Owner has to be handled here before this compiles.
var _ messages.OwnerHandler[actor.Context] = (*worker)(nil)

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		w.acquire(ctx)
		return
	}
	messages.DispatchOwner(w, ctx, ctx.Message(), nil)
}

// acquire uses Request, as the lock answers the sender of a message; with Send it
// would not know one.
func (w *worker) acquire(ctx actor.Context) {
	w.request++
	ctx.Request(w.lock, &messages.Acquire{RequestId: w.request})
	if w.fickle {
		ctx.Request(w.lock, &messages.Cancel{RequestId: w.request})
	}
}

// Granted implements messages.OwnerHandler.
func (w *worker) Granted(ctx actor.Context, msg *messages.Granted) {
	w.say.Printf("%s holds the lock, token %v", w.name, actors.TokenOf(msg))
	if w.leaves {
		w.finish(ctx, "stops without a release")
		return
	}
	if w.keeps != nil {
		w.keeps <- w.name
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

// Suspended implements messages.OwnerHandler. The grant still holds.
func (w *worker) Suspended(actor.Context, *messages.Suspended) {}

// RevokeRequested implements messages.OwnerHandler. These workers are quick.
func (w *worker) RevokeRequested(actor.Context, *messages.RevokeRequested) {}

// Contended implements messages.OwnerHandler. These workers do not ask for it.
func (w *worker) Contended(actor.Context, *messages.Contended) {}

func (w *worker) finish(ctx actor.Context, how string) {
	w.say.Println(w.name, how)
	w.finished <- w.name
	ctx.Stop(ctx.Self())
}

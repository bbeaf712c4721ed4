package lock

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Actor is the part of a lock's actor that deals with owners. The actor of a recipe embeds it,
// calls Init, and is a [host.Actor] by its methods. The Entry is what the [manager.Manager] knows
// of the actor.
type Actor struct {
	*manager.Entry
	// Detail is text for people about the message in hand. The answers that follow from it carry
	// it. It is empty between messages.
	Detail string

	handledAt time.Duration // when the message in hand came, by Session.Now; 0 between messages
	behavior  Behavior      // the actor itself: what differs from recipe to recipe
	table     requestTable  // of open requests
	senders   map[host.Identity]watchedSender
	used      bool                  // since the last tick
	stopping  bool                  // the actor takes no further message
	failed    bool                  // its state cannot be relied on, or it has called StopFailed
	suspended bool                  // the connection is lost, and the session may live
	holders   int                   // of this process, whose grants have not ended
	grantedAt time.Duration         // the last grant, by Session.Now
	lost      map[string][]*Request // by named owner: grants that it has not released; see awaitRelease
}

// Init makes l the Actor of the entry.
func (l *Actor) Init(e *manager.Entry, b Behavior) {
	l.Entry, l.behavior = e, b
	l.suspended = e.SessionAtStart.GetState() == messages.SessionState_SUSPENDED
}

// LockActor marks the actors of locks.
func (l *Actor) LockActor() {}

// Receive implements host.Actor.
func (l *Actor) Receive(from ask.Recipient, msg any) {
	if l.stopping {
		l.Refuse(from, msg) // answers of the bridge go on to ReceiveAfterStop
		return
	}
	if failed, is := msg.(*messages.Failed); is && failed.Reason == messages.Reason_SESSION_LOST {
		return // SessionChanged came before, and has dealt with all that the bridge was asked for
	}
	l.handledAt = l.Manager.Session.Now()
	l.checkSession(msg) // ends the grants of a session that is past its deadline
	// The message is of service Lock, of the recipe, or of the Actor itself.
	if !messages.DispatchLock(lockHandler{l}, from, msg, from) && !l.behavior.ReceiveOther(from, msg) {
		l.receiveOwn(msg)
	}
	l.Detail, l.handledAt = "", 0
}

// lockHandler keeps the handlers of service Lock out of the Actor's own methods.
type lockHandler struct{ *Actor }

// Acquire implements messages.LockHandler. The Reply is not used: Grant and RefuseRequest send the
// answers to the sender as messages.
func (l lockHandler) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	if r := l.Accept(from, msg); r != nil { // nil: it is refused (table.go)
		l.behavior.Acquire(r, msg)
	}
}

// Grant tells the owner of the request that it holds the lock. step is the step of the grant's token.
// Grants of Acquisitions can share the message, which nothing writes to then. For another owner Grant
// writes its number of the request, request_id in lock.proto, into granted.
func (l *Actor) Grant(r *Request, granted *messages.Granted, step uint32) {
	l.markGranted(r, granted, step)
	if a := r.Acquisition(); a != nil {
		a.OnGranted(granted, step)
	} else {
		granted.RequestId = r.Number()
		l.recipientOfGranted(r).Tell(granted)
	}
	l.tellIfSuspended(r)
}

// Lose tells the owner that its grant is lost. A named owner still has to release it, except of a
// semaphore: see answers.go. (A requests.Reason is a messages.Reason by the same number.)
func (l *Actor) Lose(id requests.ID, why requests.Reason) {
	r := l.Request(id)
	l.tellLost(r, messages.Reason(why), l.Detail)
	l.awaitRelease(r)
}

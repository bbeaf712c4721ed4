package lock

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Actor is the part of a lock's actor that deals with owners. The actor of a recipe embeds it, calls Init,
// and is a [host.Actor] by its methods. The Entry is what the [manager.Manager] knows of the actor.
type Actor struct {
	*manager.Entry
	// Detail is text for people about the message in hand. The answers that follow from it carry it.
	// It is empty between messages.
	Detail string

	handledAt  time.Duration // when the message in hand was received, by Bridge.Now; 0 between messages
	behavior   Behavior      // the actor itself: what differs from recipe to recipe
	table      requestTable  // of open requests
	senders    map[host.Identity]*watchedSender
	failReason messages.Reason            // why the actor stops, if it has failed: see StopFailed
	used       bool                       // since the last tick
	stopping   bool                       // the actor takes no further message
	suspended  bool                       // the connection is lost, and the session may live
	lost       requests.ByOwner[*Request] // lost grants that their owners have not released; see lost.go
}

// Receive implements host.Actor.
func (s *Actor) Receive(from ask.Recipient, msg any) {
	if s.stopping {
		s.Refuse(from, msg) // answers of the bridge go on to ReceiveAfterStop
		return
	}
	if failed, is := msg.(*messages.Failed); is && failed.Reason == messages.Reason_SESSION_LOST {
		return // SessionChanged came before, and has dealt with all that the bridge was asked for
	}
	s.handledAt = s.Manager.Bridge.Now()
	s.checkSession(msg) // ends the grants of a session that is past its deadline
	// The message is of service Lock, of the recipe, or of the Actor itself. (The first from is passed
	// to the handlers; a Reply sends its answer to the second.)
	if !messages.DispatchLock(lockHandler{s}, from, msg, from) && !s.behavior.ReceiveOther(from, msg) {
		s.receiveOwn(msg)
	}
	s.Detail, s.handledAt = "", 0
}

// lockHandler keeps the handlers of service Lock out of the Actor's own methods.
type lockHandler struct{ *Actor }

// Acquire implements messages.LockHandler. The Reply is not used: Grant and RefuseRequest send the answers to the
// sender as messages.
func (s lockHandler) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	if r := s.Accept(from, msg); r != nil { // nil: it is refused (table.go)
		s.behavior.Acquire(r, msg)
	}
}

// Grant tells the owner of the request that it holds the lock. It writes the owner's number of the
// request, request_id in lock.proto, into granted. To a future it sends granted from an alias, which is a second PID
// of this actor: if the future is gone, granted comes back to the alias, and the lock takes the grant back (senders.go).
func (s *Actor) Grant(r *Request, granted *messages.Granted) {
	s.markGranted(r, granted, granted.Step)
	granted.RequestId = r.Number()
	s.recipientOfGranted(r).Tell(granted)
	s.tellIfSuspended(r)
}

// Lose tells the owner that its grant is lost. A named owner still has to release it, except of a semaphore: see lost.go.
// (A requests.Reason is a messages.Reason by the same number.)
func (s *Actor) Lose(id requests.ID, why requests.Reason) {
	r := s.Request(id)
	s.tellLost(r, messages.Reason(why), s.Detail)
	s.awaitRelease(r)
}

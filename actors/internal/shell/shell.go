package shell

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Shell is the part of a lock's actor that deals with owners. An actor embeds it, calls Init,
// and is a [host.Actor] by the Shell's methods. The Entry is what the [Manager] knows of the actor.
type Shell struct {
	*Entry
	// Detail is more about the message in hand, for the answers that follow from it. It is empty
	// between messages.
	Detail string

	behavior   Behavior     // the actor itself: what differs from recipe to recipe
	table      requestTable // of open requests
	senders    map[host.Identity]*watchedSender
	failReason messages.Reason // of the actor; see StopFailed
	expired    map[string]int  // by named owner: requests whose HoldAtMost is over and that are not released
}

// Init makes s the Shell of the entry's actor.
func (s *Shell) Init(e *Entry, b Behavior) {
	s.Entry, s.behavior = e, b
}

// Messages of an actor to itself.
type (
	// waitExpired: the wait of a request is over.
	waitExpired struct{ id requests.ID }
	// holdTime: a part of the time for which a request may hold is over.
	holdTime struct{ id requests.ID }
	// tick: the manager's timer has fired, as it does every second or more often.
	tick struct{}
)

// connectionLost is sent to all actors when the bridge has lost the connection, and again when it has
// lost the session.
type connectionLost struct{ sessionLost bool }

// Receive implements host.Actor.
func (s *Shell) Receive(from ask.Recipient, msg any) {
	if s.stopping {
		s.Refuse(from, msg)
		return
	}
	if failed, is := msg.(*messages.Failed); is && failed.Reason == messages.Reason_SESSION_LOST {
		return // SessionChanged has ended the request
	}
	s.checkSession(msg)
	if !messages.DispatchLock(lockHandler{s}, from, msg, from) && !s.behavior.ReceiveOther(from, msg) {
		s.receiveOwn(msg)
	}
	s.Detail = ""
}

// SessionOverdue is the detail of a loss that the bridge has not reported yet.
const SessionOverdue = "the session is over or past its deadline"

// checkSession comes before all else: nothing is granted in a session that must be taken for
// lost by now. In a process that was paused the bridge may not have reported that yet, and its
// timer may not have fired. A message that itself reports the loss is not preceded by the check: it
// also says why.
func (s *Shell) checkSession(msg any) {
	switch msg := msg.(type) {
	case *messages.SessionChanged:
		if msg.State == messages.SessionState_LOST {
			return
		}
	case *messages.Lost, connectionLost:
		return
	}
	if epoch := s.behavior.Epoch(); epoch != 0 && s.Manager.Bridge.Lost(epoch) {
		s.Detail = SessionOverdue
		s.behavior.SessionOverdue()
		s.Detail = ""
	}
}

// lockHandler keeps the handlers of service Lock out of the Shell's own methods.
type lockHandler struct{ *Shell }

// Acquire implements messages.LockHandler.
func (s lockHandler) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	if r := s.Accept(from, msg); r != nil {
		s.behavior.Acquire(r, msg)
	}
}

// Cancel implements messages.LockHandler.
func (s lockHandler) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := s.Lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		s.cancel(r, messages.Reason_CANCELLED)
	}
}

// Release implements messages.LockHandler.
func (s lockHandler) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	r := s.Lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || !r.Granted || r.Released {
		tell(from, s.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return
	}
	s.countRelease(r)
	r.Released, r.releaser = true, from
	if r.holdExpired {
		s.releaseExpired(r)
		return
	}
	s.behavior.Release(r)
}

// receiveOwn handles the messages that are not of the recipe.
func (s *Shell) receiveOwn(msg any) {
	switch msg := msg.(type) {
	case openQuery:
		msg.answer(s)
	case refuseWaiting:
		s.refuseWaiting()
	case waitExpired:
		if r := s.table.requests.At(msg.id); r != nil && !r.Granted {
			s.Detail = fmt.Sprintf("after %v", r.extras.wait)
			s.behavior.Cancel(r, messages.Reason_TIMED_OUT)
		}
	case holdTime:
		s.onHoldTime(msg.id)
	case tick:
		s.onTick()
	case connectionLost:
		s.refuseTries()
		if msg.sessionLost {
			s.Detail = s.Manager.Bridge.outage()
			s.failWaiting(messages.Reason_SESSION_LOST, func(r *Request) bool { return r.failOnLoss })
		}
	case host.Terminated:
		s.senderEnded(msg.Actor)
	case host.Undelivered:
		s.undelivered(msg.Tag)
	case *actor.DeadLetterResponse: // host.Terminated says that the sender of the request has ended
	default:
		s.Manager.Log.Warn("lock got a message that it does not know", "path", s.Path, "message", fmt.Sprintf("%T", msg), "do", "correct the sender")
	}
}

// onTick is called at each tick. It stops an actor that has been idle for long. Idle means that
// no request is open and nothing is held; quiet, that no request has come since the last tick, either.
func (s *Shell) onTick() {
	idle := s.behavior.Idle() && s.table.requests.Len() == 0
	quiet := idle && !s.used
	if !s.used {
		s.table.releaseMemory()
	}
	for _, r := range s.table.requests.All() {
		if a := r.Acquisition(); a != nil {
			a.ArmLeakDetection(s.Manager.TimeOf(r.since))
		}
	}
	s.unwatchIdleSenders()
	if !s.retireIfIdle(idle) {
		s.behavior.Tick(quiet)
	}
}

// ---- the end

// StopFailed stops the actor because one of its dependencies has stopped. A request that comes
// from now on finds new actors. Open requests end with the reason.
func (s *Shell) StopFailed(reason messages.Reason) {
	s.Manager.forget(s.Entry)
	s.stopping, s.failed, s.failReason = true, true, reason
	s.Self.Stop()
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed. All open
// requests get an answer, and nothing on ZooKeeper or in the dependencies is left behind.
func (s *Shell) Stopped(failure any) {
	defer s.Manager.running.Done()
	s.Manager.forget(s.Entry)
	s.unwatchSenders()
	s.stopping = true
	if failure != nil {
		s.failed, s.failReason = true, messages.Reason_INTERNAL
	}
	if s.failed {
		s.failAll()
	}
	s.behavior.Close(s.failed)
	for r := range s.Requests() {
		if r.holdExpired { // the recipe does not know it
			s.forgetExpired(r)
		}
	}
	s.Detail = ""
}

// failAll answers all requests of an actor whose state cannot be relied on any more.
func (s *Shell) failAll() {
	reason := s.failReason
	switch {
	case s.Manager.isClosed():
		reason = messages.Reason_CLOSED
	case reason == messages.Reason_INTERNAL:
		s.Detail = "see the log"
	}
	s.EndAll(requests.Reason(reason))
	s.Detail = ""
}

// Refuse implements host.Actor: it answers what comes after the end.
func (s *Shell) Refuse(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case Envelope:
		for _, one := range msg.Acquires() {
			s.Refuse(from, one)
		}
		return
	case openQuery:
		msg.answer(s)
		return
	}
	if !messages.DispatchLock(afterStop{s}, from, msg, from) {
		s.behavior.ReceiveAfterStop(from, msg)
	}
}

// afterStop has the handlers of a stopped actor.
type afterStop struct{ *Shell }

// Acquire implements messages.LockHandler.
func (s afterStop) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	tell(from, s.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (s afterStop) Cancel(ask.Recipient, *messages.Cancel) {}

// Release implements messages.LockHandler.
func (s afterStop) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	reason := messages.Reason_CLOSED // an actor that retired had no grants
	if s.failed {
		reason = messages.Reason_INTERNAL
	}
	tell(from, s.refusal(msg.GetRequestId(), reason, "the lock's actor has stopped"))
}

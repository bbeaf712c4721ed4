package lock

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// StopFailed stops the actor because one of its dependencies has stopped. A request that comes
// from now on finds new actors. Open requests end with the reason.
func (s *Actor) StopFailed(reason messages.Reason) {
	s.Manager.Forget(s.Entry)
	s.stopping, s.failReason = true, reason
	s.Self.Stop()
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed. All open
// requests get an answer, and no contender's node and no request to a dependency is left behind.
func (s *Actor) Stopped(failure any) {
	defer s.Manager.Stopped()
	s.Manager.Forget(s.Entry)
	s.unwatchSenders()
	s.stopping = true
	if failure != nil {
		s.failReason = messages.Reason_INTERNAL
	}
	if s.failReason != 0 {
		s.failAll()
	}
	s.behavior.Close(s.failReason != 0)
	for _, r := range s.Requests() {
		if r.lost != 0 { // the recipe does not know it
			s.forgetLost(r)
		}
	}
	s.Detail = ""
}

// failAll answers all requests of an actor whose state cannot be relied on any more.
func (s *Actor) failAll() {
	reason := s.failReason
	switch {
	case s.Manager.Closed():
		reason = messages.Reason_CLOSED
	case reason == messages.Reason_INTERNAL:
		s.Detail = "see the log"
	}
	s.EndAll(requests.Reason(reason))
	s.Detail = ""
}

// Refuse implements host.Actor: it answers what comes after the end.
func (s *Actor) Refuse(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case Envelope:
		for _, one := range msg.Acquires() {
			s.Refuse(from, one)
		}
		return
	case manager.OpenQuery:
		s.answerOpen(msg)
		return
	}
	if !messages.DispatchLock(afterStop{s}, from, msg, from) {
		s.behavior.ReceiveAfterStop(from, msg)
	}
}

// afterStop has the handlers of a stopped actor.
type afterStop struct{ *Actor }

// Acquire implements messages.LockHandler.
func (s afterStop) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	tell(from, s.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (s afterStop) Cancel(ask.Recipient, *messages.Cancel) {}

// Release implements messages.LockHandler.
func (s afterStop) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	reason := messages.Reason_CLOSED // an actor that retired had no grants
	if s.failReason != 0 {
		reason = messages.Reason_INTERNAL
	}
	tell(from, s.refusal(msg.GetRequestId(), reason, "the lock's actor has stopped"))
}

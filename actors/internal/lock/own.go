package lock

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Messages of an actor to itself.
type (
	// withdrawal: a request ends as by a Cancel, because the actor or the future that has sent it has ended.
	withdrawal struct{ id requests.ID }
	// tryDisconnected: a request with Try ends unless it is granted, because there is no connection.
	tryDisconnected struct{ id requests.ID }
	// waitExpired: the wait of a request is over.
	waitExpired struct{ id requests.ID }
	// holdTime: a part of the time for which a request may hold is over.
	holdTime struct{ id requests.ID }
)

// receiveOwn handles the messages that are not of the recipe.
func (s *Actor) receiveOwn(msg any) {
	switch msg := msg.(type) {
	case manager.OpenQuery:
		s.answerOpen(msg)
	case manager.RefuseWaiting:
		s.refuseWaiting()
	case withdrawal:
		if r := s.table.requests.At(msg.id); r != nil {
			s.cancel(r, messages.Reason_CANCELLED)
		}
	case tryDisconnected:
		if r := s.table.requests.At(msg.id); r != nil && r.Granted == nil {
			s.Detail = s.Manager.Bridge.OutageText()
			s.behavior.Cancel(r, messages.Reason_DISCONNECTED)
		}
	case waitExpired:
		if r := s.table.requests.At(msg.id); r != nil && r.Granted == nil {
			s.Detail = fmt.Sprintf("after %v", r.extras.wait)
			s.behavior.Cancel(r, messages.Reason_TIMED_OUT)
		}
	case holdTime:
		s.onHoldTime(msg.id)
	case manager.Tick:
		s.onTick()
	case manager.StateChange:
		s.onSessionState(msg)
	case host.Terminated:
		s.senderEnded(msg.Actor)
	case host.Undelivered:
		s.undelivered(msg.Tag)
	case *actor.DeadLetterResponse: // host.Terminated says that the sender of the request has ended
	default:
		s.Manager.Log.Warn("lock got a message that it does not know", "path", s.Path, "message", fmt.Sprintf("%T", msg), "do", "correct the sender")
	}
}

// onSessionState tells the holders that the connection is lost, and ends the requests that do not wait for the
// next connection or session. The holders of a lost session hear of that from the recipe.
func (s *Actor) onSessionState(now manager.StateChange) {
	s.suspended = now.State == messages.SessionState_SUSPENDED
	if !isLost(now.State) {
		return
	}
	for _, r := range s.Requests() {
		s.tellIfSuspended(r)
	}
	s.Detail = s.Manager.Bridge.OutageText()
	s.failWaiting(messages.Reason_DISCONNECTED, func(r *Request) bool { return r.Try })
	if now.State == messages.SessionState_LOST {
		s.failWaiting(messages.Reason_SESSION_LOST, func(r *Request) bool { return r.failsWithSession(now.Epoch) })
	}
}

// onTick is called at each tick. It stops an actor that has been idle for long. Idle means that
// no request is open and nothing is held; quiet, that no request has come since the last tick, either.
func (s *Actor) onTick() {
	idle := s.behavior.Idle() && s.table.requests.Len() == 0
	quiet := idle && !s.used
	if !s.used {
		s.table.releaseMemory()
	}
	for _, r := range s.Requests() {
		if a := r.Acquisition(); a != nil {
			a.ArmLeakDetection(s.Manager.Bridge.TimeOf(r.since))
		}
	}
	s.unwatchIdleSenders()
	s.used = !idle // a request that is open now is use after this tick, too
	if s.Manager.RetireIfQuiet(s.Entry, quiet) {
		s.stopping = true
		return
	}
	s.behavior.Tick(quiet)
}

// isLost reports whether there is no connection. It returns false once the bridge is closed.
func isLost(s messages.SessionState) bool {
	return s == messages.SessionState_SUSPENDED || s == messages.SessionState_LOST
}

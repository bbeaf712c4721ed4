package lock

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// SessionOverdue is the detail of a loss that the bridge has not reported yet.
const SessionOverdue = "the session is over or past its deadline"

// checkSession comes before all else: nothing is granted in a session that must be taken for
// lost by now. In a process that was paused the bridge may not have reported that yet, and its
// timer may not have fired. A message that itself reports the loss is not preceded by the check: it
// also says why.
func (s *Actor) checkSession(msg any) {
	switch msg := msg.(type) {
	case *messages.SessionChanged:
		if msg.State == messages.SessionState_LOST {
			return
		}
	case *messages.Lost, manager.StateChange:
		return
	}
	if epoch := s.behavior.Epoch(); epoch != 0 && s.Manager.Bridge.LostAt(epoch, s.now()) {
		s.Detail = SessionOverdue
		s.behavior.SessionOverdue()
		s.Detail = ""
	}
}

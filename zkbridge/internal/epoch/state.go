package epoch

import "github.com/actorlock/actorlock/messages"

// SessionEvent is an event of a session.
type SessionEvent int

const (
	Established  SessionEvent = iota // a server has confirmed the session, new or old
	Disconnected                     // the connection is gone
	Expired                          // the server has said that the session is over
	Overdue                          // the deadline has passed without an answer
	Refused                          // a server refuses the credentials
	GivenUp                          // the bridge ends the session and goes on with another
	Closed                           // the bridge ends
)

// SessionMachine is the state machine of the bridge's sessions. It has no clock and no connection.
type SessionMachine struct {
	State messages.SessionState
	Epoch uint64 // of the state; 0 before the first session
}

// After returns the state after e has happened in an epoch, and reports whether e has changed
// anything. Events of an epoch that is over change nothing, whenever they come: a session never
// comes back. Nor does a disconnect before there was a session.
func (s SessionMachine) After(e SessionEvent, epoch uint64) (next SessionMachine, changed bool) {
	next = s
	switch lost := s.State == messages.SessionState_LOST; {
	case s.State == messages.SessionState_ENDED:
	case e == Closed:
		next.State = messages.SessionState_ENDED
	case lost && e == Established && epoch > s.Epoch:
		next = SessionMachine{messages.SessionState_CONNECTED, epoch}
	case lost || epoch != s.Epoch:
	case e == Established:
		next.State = messages.SessionState_CONNECTED
	case e == Disconnected:
		next.State = messages.SessionState_SUSPENDED
	default: // Expired, Overdue, Refused, GivenUp
		next.State = messages.SessionState_LOST
	}
	return next, next != s
}

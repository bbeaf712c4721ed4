package zkbridge

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Session is the bridge's ZooKeeper session at one moment.
type Session struct {
	// State is LOST before the first session and between two of them.
	State messages.SessionState
	// Epoch is the bridge's number of the session, from 1. While LOST it is the epoch that was
	// lost, or 0.
	Epoch uint64
	// ID is ZooKeeper's number of the session.
	ID int64
	// Timeout is the session timeout that the server has granted.
	Timeout time.Duration
	// Deadline is when the session must be taken for lost if ZooKeeper answers nothing more. While
	// LOST it is the deadline of the session that was lost, which may have ended earlier. It is
	// zero before the first session and after Close.
	Deadline time.Time
}

// String returns the session for people, as in "CONNECTED, session 0x1000a3f2c9b0001 of epoch 1".
func (s Session) String() string {
	if s.Epoch == 0 {
		return s.State.String() + ", no session yet"
	}
	return fmt.Sprintf("%v, session %s of epoch %d", s.State, messages.FormatSession(s.ID), s.Epoch)
}

// LogValue implements slog.LogValuer.
func (s Session) LogValue() slog.Value {
	return slog.GroupValue(slog.String("state", s.State.String()), slog.String("session", messages.FormatSession(s.ID)),
		slog.Uint64("epoch", s.Epoch), slog.Duration("timeout", s.Timeout))
}

// ErrSessionTimeout is the error of a bridge whose server has granted another session timeout than
// Config asks for. The server's limits are minSessionTimeout and maxSessionTimeout; their defaults
// are 2 and 20 times tickTime.
var ErrSessionTimeout = errors.New("server does not grant the session timeout")

// ErrNoChroot is the error of a bridge whose chroot does not exist, with Config.RequireChroot.
var ErrNoChroot = zkconn.ErrNoChroot

// sessionEvent is an event of a session.
type sessionEvent int

const (
	sessionEstablished  sessionEvent = iota // a server has confirmed the session, new or old
	sessionDisconnected                     // the connection is gone
	sessionExpired                          // the server has said that the session is over
	sessionOverdue                          // the deadline has passed without an answer
	sessionRefused                          // a server refuses the credentials
	sessionGivenUp                          // the bridge ends the session and goes on with another
	sessionClosed                           // the bridge ends
)

// sessionState is the state machine of the bridge's sessions. It has no clock and no connection.
type sessionState struct {
	state messages.SessionState
	epoch uint64 // of the state; 0 before the first session
}

// after returns the state after e has happened in an epoch, and reports whether e has changed
// anything. Events of an epoch that is over change nothing, whenever they come: a session never
// comes back. Nor does a disconnect before there was a session.
func (s sessionState) after(e sessionEvent, epoch uint64) (next sessionState, changed bool) {
	next = s
	switch lost := s.state == messages.SessionState_LOST; {
	case s.state == messages.SessionState_ENDED:
	case e == sessionClosed:
		next.state = messages.SessionState_ENDED
	case lost && e == sessionEstablished && epoch > s.epoch:
		next = sessionState{messages.SessionState_CONNECTED, epoch}
	case lost || epoch != s.epoch:
	case e == sessionEstablished:
		next.state = messages.SessionState_CONNECTED
	case e == sessionDisconnected:
		next.state = messages.SessionState_SUSPENDED
	default: // sessionExpired, sessionOverdue, sessionRefused, sessionGivenUp
		next.state = messages.SessionState_LOST
	}
	return next, next != s
}

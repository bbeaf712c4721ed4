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

// Clock is a clock that goes on while the machine is suspended.
type Clock = zkconn.Clock

// NewClock returns a clock that begins at 0, as a bridge has one. The clock calls suspendedFor as the
// bridge calls Config.SuspendedFor. NewClock never blocks.
func NewClock(suspendedFor func() time.Duration) *Clock { return zkconn.NewClock(suspendedFor) }

// ErrSessionTimeout is the error of a bridge whose server has granted another session timeout than
// Config asks for. The server's limits are minSessionTimeout and maxSessionTimeout; their defaults
// are 2 and 20 times tickTime.
var ErrSessionTimeout = errors.New("server does not grant the session timeout")

// ErrNoChroot is the error of a bridge whose chroot does not exist, with Config.RequireChroot.
var ErrNoChroot = zkconn.ErrNoChroot

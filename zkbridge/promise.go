package zkbridge

import (
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Clock is a clock that goes on while the machine is suspended.
type Clock = zkconn.Clock

// NewClock returns a clock that begins at 0, as a bridge has one. The clock calls suspendedFor as the
// bridge calls Config.SuspendedFor. NewClock never blocks.
func NewClock(suspendedFor func() time.Duration) *Clock { return zkconn.NewClock(suspendedFor) }

// Promise returns for how long from now on a process without ZooKeeper may rely on the session of
// an epoch: until the session's deadline, and limit at most. It is not positive if the session is
// lost. The bridge keeps the promise: it does not close the session before, also if it takes it for
// lost or fails, unless Close is called. The clock of the other process may be slower by a
// two-hundredth. Promise never blocks.
func (b *Bridge) Promise(epoch uint64, limit time.Duration) time.Duration {
	now := b.state.Load()
	if now.conn == nil || !now.lives(epoch) {
		return 0
	}
	at := b.Now()
	d := min(limit, now.conn.LeftAt(at))
	if d <= 0 || now.conn.Overdue(at) {
		return 0
	}
	b.promised.raise(at + d + d/zkconn.ClockError)
	// The bridge stores that the session is lost before it asks until when it must not close it.
	if !b.state.Load().lives(epoch) {
		return 0
	}
	return d
}

// lives reports whether the session of the epoch is the present one and not lost.
func (s *snapshot) lives(epoch uint64) bool {
	return s.Epoch == epoch && (s.State == messages.SessionState_CONNECTED || s.State == messages.SessionState_SUSPENDED)
}

// closePause returns how long the bridge waits before it closes a session that it has given up.
func (b *Bridge) closePause() time.Duration {
	return max(b.cfg.Margin, b.promised.load()-b.Now())
}

// beatOfPromises is the time between beats while other processes rely on the session: a Promise is
// shorter by up to twice that time.
const beatOfPromises = time.Second

// beatPause returns the time between two beats.
func (b *Bridge) beatPause(timeout time.Duration) time.Duration {
	pause := timeout / zkconn.BeatsPerTimeout
	if b.promised.load() > b.Now() {
		pause = min(pause, beatOfPromises)
	}
	return pause
}

// latest is a time that only grows.
type latest struct{ at atomic.Int64 }

func (l *latest) load() time.Duration { return time.Duration(l.at.Load()) }

func (l *latest) raise(at time.Duration) {
	for {
		was := l.at.Load()
		if int64(at) <= was || l.at.CompareAndSwap(was, int64(at)) {
			return
		}
	}
}

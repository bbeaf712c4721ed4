package zkbridge

import (
	"time"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Promise returns for how long from now on a process without ZooKeeper may rely on the session of
// an epoch: until the session's deadline, and limit at most. It is not positive if the session is
// lost. The bridge keeps the promise: it does not close the session before, also if it takes it for
// lost or fails, unless Close is called. The clock of the other process may be slower by a
// two-hundredth. Promise never blocks.
func (b *internals) Promise(epoch uint64, limit time.Duration) time.Duration {
	now := b.state.Load()
	if now.conn == nil || !now.lives(epoch) {
		return 0
	}
	at := b.Now()
	d := min(limit, now.conn.LeftAt(at))
	if d <= 0 || now.conn.Overdue(at) {
		return 0
	}
	b.promised.Raise(at + d + d/zkconn.ClockError)
	// The bridge stores that the session is lost before it asks until when it must not close it.
	if !b.state.Load().lives(epoch) {
		return 0
	}
	return d
}

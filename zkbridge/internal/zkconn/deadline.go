package zkconn

import (
	"fmt"
	"time"
)

// now returns the time since the bridge was opened, by the monotonic clock.
func (c *SessionConn) now() time.Duration { return time.Since(c.openedAt) }

// onAnswered notes that the server has answered a message that was sent at a time. Only the goroutine
// that reads the connection calls it.
func (c *SessionConn) onAnswered(at time.Duration) {
	c.lastAnswered.Store(max(int64(at), c.lastAnswered.Load()))
}

// Deadline returns when the session must be taken for lost. The leader counts the session timeout from
// the newest message that it has heard of. If the server that answered is in touch with the leader,
// that is the newest answered message or a later one. A server that has hung up may not have been in
// touch; then it is an earlier message, sent up to a ping's interval before. In a handshake the server
// asks the leader. See the documentation of package zkbridge.
func (c *SessionConn) Deadline() time.Time { return c.openedAt.Add(c.deadlineOffset()) }

// deadlineOffset returns the deadline as a time since openedAt.
func (c *SessionConn) deadlineOffset() time.Duration {
	timeout := time.Duration(c.granted.Load())
	margin := min(c.cfg.Margin, timeout/2) // a later session may have been granted less
	heard := time.Duration(c.lastAnswered.Load())
	if away := time.Duration(c.disconnectedAt.Load()); away != 0 {
		heard = max(min(heard, away-timeout/PingsPerTimeout), time.Duration(c.lastHandshake.Load()))
	}
	return heard + timeout - margin
}

// Overdue reports whether the deadline has passed at a time. Once it has returned true it always does:
// an answer that comes later, from a buffer in which it has waited while the process was paused, does
// not bring back a session that was taken for lost.
func (c *SessionConn) Overdue(at time.Duration) bool {
	if c.deadlinePassed.Load() {
		return true
	}
	if at < c.deadlineOffset() {
		return false
	}
	c.deadlinePassed.Store(true)
	return true
}

// PingsPerTimeout is how many pings go-zookeeper sends within a session timeout.
const PingsPerTimeout = 3

// UnansweredSince returns when the oldest unanswered request was sent, and an error that names the
// server. The error is nil if no request has waited for the time least.
func (c *SessionConn) UnansweredSince(least time.Duration) (since time.Time, why error) {
	w := c.active.Load()
	if w == nil {
		return time.Time{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 || c.now()-w.sent[0].at < least {
		return time.Time{}, nil
	}
	return c.openedAt.Add(w.sent[0].at), fmt.Errorf("%v does not answer", w.RemoteAddr())
}

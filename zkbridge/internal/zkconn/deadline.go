package zkconn

import (
	"fmt"
	"slices"
	"time"
)

// hearing is what a client knows of the leader's hearing of its session: by a message that the
// leader has heard of it counts the session timeout anew. It has no clock; its times have one
// origin. The zero value knows of nothing.
//
// A server that is cut off from the leader goes on answering, but not for longer than the margin.
// So when the server answers a message, it was in touch with the leader a margin before that was
// sent, or later, and what it had answered by then, the leader has heard of. In a handshake the
// server asks the leader.
type hearing struct {
	timeout, margin time.Duration // of the session
	newest          time.Duration // when the newest answered message of the present connection was sent
	proven          time.Duration // when the newest message was sent that the leader has heard of, by the rule above
	recent          []exchange    // of the present connection, oldest first, that have no part in proven yet
}

// exchange is a message and its answer.
type exchange struct{ sent, answered time.Duration }

// ClockError is the part of a time by which the clocks of client and servers may disagree on it: a
// two-hundredth, ten times as much as a time service adjusts clocks by.
const ClockError = 200

// onHandshake begins a connection.
func (h *hearing) onHandshake(e exchange, timeout, margin time.Duration) {
	h.timeout, h.margin = timeout, margin
	h.newest, h.proven = e.sent, max(h.proven, e.sent)
	h.recent = append(h.recent[:0], e)
}

// onAnswered notes that a message was answered. now returns the time of the answer.
func (h *hearing) onAnswered(sent time.Duration, now func() time.Duration) {
	const kept = 32 // exchanges within a margin; those between are left out
	h.newest = max(h.newest, sent)
	inTouch := h.newest - h.margin - h.margin/ClockError
	i := 0
	for ; i < len(h.recent) && h.recent[i].answered <= inTouch; i++ {
		h.proven = max(h.proven, h.recent[i].sent)
	}
	h.recent = slices.Delete(h.recent, 0, i)
	if n := len(h.recent); n == 0 || sent-h.recent[n-1].sent >= h.margin/kept {
		h.recent = append(h.recent, exchange{sent, now()})
	}
}

// deadline returns when the session must be taken for lost. A server that is in touch with the
// leader keeps it for the margin longer.
func (h *hearing) deadline() time.Duration {
	return h.timeout + min(h.proven-h.timeout/ClockError, h.newest-h.margin)
}

// onHandshake notes that a server has answered a connect request that was sent at a time, and has
// granted a timeout. Only the goroutine that reads the connection calls it.
func (c *SessionConn) onHandshake(sent, timeout time.Duration) {
	c.granted.Store(int64(timeout))
	margin := min(c.cfg.Margin, timeout/2) // a later session may have been granted less
	c.hearing.onHandshake(exchange{sent, c.now()}, timeout, margin)
	c.deadline.Store(int64(c.hearing.deadline()))
}

// onAnswered notes that the server has answered a message that was sent at a time. Only the goroutine
// that reads the connection calls it.
func (c *SessionConn) onAnswered(sent time.Duration) {
	c.hearing.onAnswered(sent, c.now)
	c.deadline.Store(int64(c.hearing.deadline()))
}

// now returns the time since the bridge was opened.
func (c *SessionConn) now() time.Duration { return c.cfg.Clock.Now() }

// Deadline returns when the session must be taken for lost. See the documentation of package
// zkbridge.
func (c *SessionConn) Deadline() time.Time { return c.cfg.Clock.TimeOf(c.deadlineOffset()) }

// Left returns how long it is until the deadline.
func (c *SessionConn) Left() time.Duration { return c.LeftAt(c.now()) }

// LeftAt is Left at a time by the clock of the bridge.
func (c *SessionConn) LeftAt(at time.Duration) time.Duration { return c.deadlineOffset() - at }

// deadlineOffset returns the deadline as a time since the bridge was opened.
func (c *SessionConn) deadlineOffset() time.Duration { return time.Duration(c.deadline.Load()) }

// Overdue reports whether the deadline has passed at a time. Once it has returned true it always
// does: an answer that comes later, from a buffer in which it has waited while the process was
// paused, does not bring back a session that was taken for lost.
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

// BeatsPerTimeout is how many pings the bridge sends within a session timeout: two intervals and the
// margin must leave time to reconnect.
const BeatsPerTimeout = 6

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
	return c.cfg.Clock.TimeOf(w.sent[0].at), fmt.Errorf("%v does not answer", w.RemoteAddr())
}

package lease

import "time"

// clockError is the part of a time by which the clocks of the two ends may disagree on it: a
// two-hundredth, as the bridge assumes of ZooKeeper's clocks.
const clockError = 200

// ClientEnd is the client's end of one lease. All its times are of one clock, which goes on while
// the machine is suspended. The zero value believes nothing yet.
type ClientEnd struct {
	number, got uint64          // of the newest renewal, and of the newest that was answered
	sent        []time.Duration // when the newest renewals after got were sent; the last is number
	until       time.Duration   // end of the belief; 0: none yet
	lapsed      bool
}

// maxSent bounds the renewals whose answers count. Only a client that has had no answer yet has so
// many: others lapse before.
const maxSent = 16

// Renew begins a renewal. It returns its number, and the number of the newest renewal that was
// answered. The caller sends the message once, later than now. The number is 0 if the lease has
// lapsed: then nothing must be sent.
func (c *ClientEnd) Renew(now time.Duration) (number, got uint64) {
	if c.Lapsed(now) {
		return 0, c.got
	}
	if len(c.sent) == maxSent {
		c.sent = append(c.sent[:0], c.sent[1:]...)
	}
	c.number++
	c.sent = append(c.sent, now)
	return c.number, c.got
}

// Renewed handles the answer to a renewal: the client believes for v, less the clocks' error, from
// when it sent the renewal. It returns false for an answer without effect: the lease has lapsed, a
// later renewal was answered before, or there was no such renewal.
func (c *ClientEnd) Renewed(now time.Duration, number uint64, v time.Duration) bool {
	first := c.number - uint64(len(c.sent)) + 1
	if c.Lapsed(now) || number < first || number > c.number {
		return false
	}
	end := c.sent[number-first] + v - v/clockError
	c.sent = append(c.sent[:0], c.sent[number-first+1:]...)
	c.got = number
	if end > now {
		c.until = max(c.until, end)
	}
	return true
}

// Until returns the end of the belief, 0 before the first answer.
func (c *ClientEnd) Until() time.Duration { return c.until }

// Believes reports whether the grants of the lease hold. It is false before the first answer,
// though a grant may have come by then.
func (c *ClientEnd) Believes(now time.Duration) bool { return c.until > 0 && !c.Lapsed(now) }

// Lapsed reports whether the belief has ended. Once it has returned true it always does. It is
// false before the first answer. The client calls it before it handles any message. When it has
// returned true the client opens another lease, and says that it has let go of this one.
func (c *ClientEnd) Lapsed(now time.Duration) bool {
	c.lapsed = c.lapsed || c.until > 0 && now >= c.until
	return c.lapsed
}

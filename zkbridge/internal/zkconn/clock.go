package zkconn

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a bridge. Unlike Go's monotonic clock it does not stand still while the
// machine is suspended. It does not go back. A suspend shows within a millisecond after it.
type Clock struct {
	running   func() time.Duration // since some instant, without suspends
	suspended func() time.Duration // how long the machine was suspended since some instant; costs a microsecond
	opened    time.Duration        // what running returned at first
	before    time.Duration        // what suspended returned at first

	checked atomic.Int64 // what running returned when suspended was called last
	ahead   atomic.Int64 // of running, because of suspends
}

// clockPrecision is how often suspended is called at most.
const clockPrecision = time.Millisecond

// SystemClocks returns the two clocks of this machine of which a Clock is made.
func SystemClocks() (running, suspended func() time.Duration) {
	opened := time.Now()
	return func() time.Duration { return time.Since(opened) }, suspendedSince
}

// NewClock returns a clock that begins at 0.
func NewClock(running, suspended func() time.Duration) *Clock {
	return &Clock{running: running, suspended: suspended, opened: running(), before: suspended()}
}

// Now returns the time since the clock was made.
func (c *Clock) Now() time.Duration {
	running := c.running() - c.opened
	if checked := c.checked.Load(); int64(running)-checked >= int64(clockPrecision) && c.checked.CompareAndSwap(checked, int64(running)) {
		c.checkSuspends()
	}
	return running + time.Duration(c.ahead.Load())
}

// checkSuspends takes suspends into account. It does not set the clock back.
func (c *Clock) checkSuspends() {
	suspended := int64(c.suspended() - c.before)
	for {
		ahead := c.ahead.Load()
		if suspended <= ahead || c.ahead.CompareAndSwap(ahead, suspended) {
			return
		}
	}
}

// TimeOf returns the time at which Now returned at, or will return it.
func (c *Clock) TimeOf(at time.Duration) time.Time { return time.Now().Add(at - c.Now()) }

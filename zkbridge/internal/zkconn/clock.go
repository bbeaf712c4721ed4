package zkconn

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a bridge. Unlike Go's monotonic clock it does not stand still while the
// machine is suspended. It does not go back. A suspend shows within a millisecond after it.
type Clock struct {
	opened       time.Time
	suspendedFor func() time.Duration // how long the machine was suspended since some instant; costs a microsecond
	before       time.Duration        // what suspendedFor returned at first

	checked atomic.Int64 // when suspendedFor was called last, by the monotonic clock
	ahead   atomic.Int64 // of the monotonic clock, because of suspends
}

// clockPrecision is how often suspendedFor is called at most.
const clockPrecision = time.Millisecond

// NewClock returns a clock that begins at 0. suspendedFor returns for how long the machine was
// suspended since some instant; nil asks the operating system.
func NewClock(suspendedFor func() time.Duration) *Clock {
	if suspendedFor == nil {
		suspendedFor = systemSuspendedFor
	}
	return &Clock{opened: time.Now(), suspendedFor: suspendedFor, before: suspendedFor()}
}

// Now returns the time since the clock was made.
func (c *Clock) Now() time.Duration {
	running := time.Since(c.opened)
	if int64(running)-c.checked.Load() >= int64(clockPrecision) {
		c.checkSuspends()
		c.checked.Store(int64(running)) // afterwards: no other goroutine relies on a check under way
	}
	return running + time.Duration(c.ahead.Load())
}

// checkSuspends takes suspends into account. It does not set the clock back.
func (c *Clock) checkSuspends() {
	suspended := int64(c.suspendedFor() - c.before)
	for {
		ahead := c.ahead.Load()
		if suspended <= ahead || c.ahead.CompareAndSwap(ahead, suspended) {
			return
		}
	}
}

// TimeOf returns the time at which Now returned at, or will return it.
func (c *Clock) TimeOf(at time.Duration) time.Time { return time.Now().Add(at - c.Now()) }

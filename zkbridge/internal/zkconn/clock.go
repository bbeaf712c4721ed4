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
	ahead   Latest       // of the monotonic clock, because of suspends
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
		c.ahead.Raise(c.suspendedFor() - c.before)
		c.checked.Store(int64(running)) // afterwards: no other goroutine relies on a check under way
	}
	return running + c.ahead.Load()
}

// Latest is a time that only grows. Any goroutine may use it.
type Latest struct{ at atomic.Int64 }

// Load returns the time, 0 at first.
func (l *Latest) Load() time.Duration { return time.Duration(l.at.Load()) }

// Raise sets the time to at if that is later.
func (l *Latest) Raise(at time.Duration) {
	for {
		was := l.at.Load()
		if int64(at) <= was || l.at.CompareAndSwap(was, int64(at)) {
			return
		}
	}
}

// TimeOf returns the time at which Now returned at, or will return it.
func (c *Clock) TimeOf(at time.Duration) time.Time { return time.Now().Add(at - c.Now()) }

package zkconn

import (
	"sync"
	"time"
)

// stepSum adds up by how much a clock goes ahead of another one, in steps of a second or more. A step back
// is not taken off: it would hide suspends that come after it.
type stepSum struct {
	mu        sync.Mutex
	last, sum time.Duration
}

// add returns the sum. ahead reads how far the clock is ahead now.
func (s *stepSum) add(ahead func() time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := ahead() // under the lock: an older reading behind a newer one would look like a step back
	switch step := now - s.last; {
	case step < 0:
		s.last = now
	case step >= time.Second:
		s.sum += step
		s.last = now
	}
	return s.sum
}

package remote

import (
	"sync"
	"time"
)

// A client may renew so many times at once, and once in each pause after that: a client of ours
// sends three in the time for which one was answered. A shorter lease has a shorter pause.
const (
	renewalsAtOnce = 64
	renewalPause   = 100 * time.Millisecond
)

// rate limits how often something is done.
type rate struct{ full time.Duration } // when all of renewalsAtOnce may be taken again

// take reports whether it may be done once more now.
func (r *rate) take(now, pause time.Duration) bool {
	full := max(r.full, now) + pause
	if full > now+renewalsAtOnce*pause {
		return false
	}
	r.full = full
	return true
}

// linePause is the time between two lines of the log of one kind that clients can have a server write.
const linePause = 10 * time.Second

// logLimit bounds the lines of the log that clients can have a server write, by their texts.
type logLimit struct {
	mu     sync.Mutex
	before map[string]*lineCount
}

type lineCount struct {
	next    time.Duration // when the next line may be written
	leftOut int
}

// take reports whether a line may be written now, and how many were left out since the last one.
func (l *logLimit) take(text string, now time.Duration) (leftOut int, may bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.before == nil {
		l.before = map[string]*lineCount{}
	}
	c := l.before[text]
	switch {
	case c == nil:
		l.before[text] = &lineCount{next: now + linePause}
		return 0, true
	case now < c.next:
		c.leftOut++
		return 0, false
	}
	leftOut, c.leftOut, c.next = c.leftOut, 0, now+linePause
	return leftOut, true
}

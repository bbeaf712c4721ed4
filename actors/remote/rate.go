package remote

import "time"

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

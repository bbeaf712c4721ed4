package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// Limits of how long a request holds, and of what it survives.

// limits draws the limits of a request, in the seeds with an ensemble.
func (r *programRequest) limits() []actors.Option {
	if r.w.plan.servers == 1 {
		return nil
	}
	switch rnd := r.w.rand("limits", r.id); rnd.IntN(6) {
	case 0:
		r.most = 1 + time.Duration(rnd.ExpFloat64()*float64(2*r.w.plan.hold))
		return []actors.Option{actors.HoldAtMost(r.most)}
	case 1:
		r.fails = true
		return []actors.Option{actors.FailOnSessionLoss()}
	}
	return nil
}

// checkLimit looks whether a grant ends when it has been held for too long, and not before. A fault may
// have kept the program from hearing of the grant for some time. Without a fault the grant came after the
// last look at the request: a release that comes later in one event is seen at the next one.
func (r *programRequest) checkLimit(now time.Duration) {
	held, expired := now-r.since, errors.Is(r.grant.Err(), actors.ErrHoldExpired)
	switch {
	case expired && r.most == 0:
		r.w.fail(now, "%v has expired, and may be held without limit", r)
	case r.most == 0 || r.p.calm() >= r.since:
	case expired && now-r.waited < r.most:
		r.w.fail(now, "%v has expired after %v at most instead of %v", r, now-r.waited, r.most)
	case r.believed && held > r.most+time.Millisecond && r.grant.Err() == nil:
		r.w.fail(now, "%v is held for %v instead of %v", r, held, r.most)
	}
}

// hasUnread reports whether the owner has another request for the lock, whose answer nothing reads.
func (r *programRequest) hasUnread() bool {
	return slices.ContainsFunc(r.w.open, func(o *programRequest) bool { return o != r && o.absent && o.owner == r.owner && o.path == r.path })
}

// lookAtEnd notes that the grant has ended by itself. That comes before all that is new, which may be another
// grant of the same moment.
func (r *programRequest) lookAtEnd(now time.Duration) {
	if !r.believed {
		return
	}
	r.checkLimit(now)
	if r.grant.Err() == nil {
		return
	}
	r.believed = false
	r.over = r.grant.Err()
	r.w.line("%d ends: %v", r.id, r.over)
	r.endGrant(now)
	r.checkLoss(now)
	if r.dropped {
		r.finish()
	}
	if r.lost != nil {
		r.lost()
	}
}

package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// Options that limit how long a request holds, and whether it survives the loss of its session.

// limitOptions draws such options, in the seeds with an ensemble.
func (r *programRequest) limitOptions() []actors.Option {
	if r.sim.plan.servers == 1 {
		return nil
	}
	switch rnd := r.sim.rand("limits", r.id); rnd.IntN(6) {
	case 0:
		r.holdAtMost = 1 + time.Duration(rnd.ExpFloat64()*float64(2*r.sim.plan.meanHold))
		return []actors.Option{actors.HoldAtMost(r.holdAtMost)}
	case 1:
		r.failOnSessionLoss = true
		return []actors.Option{actors.FailOnSessionLoss()}
	}
	return nil
}

// checkHoldLimit checks that a grant ends when HoldAtMost says so, and not before. It does not
// check the time if a fault may have delayed the grant on its way to the program. Without a fault
// the grant came after lastSeenWaiting: a release that comes later in an event is seen after the
// next event.
func (r *programRequest) checkHoldLimit(now time.Duration) {
	held, expired := now-r.stageSince, errors.Is(r.grant.Err(), actors.ErrHoldExpired)
	switch {
	case expired && r.holdAtMost == 0:
		r.sim.fail(now, "%v has expired, though it has no HoldAtMost", r)
	case r.holdAtMost == 0 || r.p.unaffectedSince() >= r.stageSince:
	case expired && r.p.byClock(now-r.lastSeenWaiting) < r.holdAtMost:
		r.sim.fail(now, "%v has expired after %v at most instead of %v", r, r.p.byClock(now-r.lastSeenWaiting), r.holdAtMost)
	case r.believed && held > r.holdAtMost+time.Millisecond && r.grant.Err() == nil:
		r.sim.fail(now, "%v is held for %v instead of %v", r, held, r.holdAtMost)
	}
}

// noteReleaseAtExpiry notes a release at the moment at which HoldAtMost ends the grant. Err says that by the clock:
// the release may come before the lock takes the grant back, and then there is no lock-delay.
func (r *programRequest) noteReleaseAtExpiry() {
	path := r.uses[0].path
	if errors.Is(r.endErr, actors.ErrHoldExpired) && r.sim.uncleanEnd[path] == r.sim.now() {
		delete(r.sim.uncleanEnd, path)
	}
}

// hasUnreadRequest reports whether the owner has another request for the lock whose answer nothing
// reads.
func (r *programRequest) hasUnreadRequest() bool {
	return slices.ContainsFunc(r.sim.requests, func(o *programRequest) bool { return o != r && o.unread && o.owner == r.owner && o.path == r.path })
}

// noteGrantEnd notes that the grant has ended without a release. It runs before advance, which may
// see another grant of the same moment.
func (r *programRequest) noteGrantEnd(now time.Duration) {
	if !r.believed {
		return
	}
	r.checkHoldLimit(now)
	if r.grant.Err() == nil {
		return
	}
	r.believed = false
	r.endErr = r.grant.Err()
	r.sim.record("%d ends: %v", r.id, r.endErr)
	r.noteLoss(now)
	r.checkLoss(now)
	if r.dropped {
		r.finish()
	}
	if r.onLost != nil {
		r.onLost()
	}
}

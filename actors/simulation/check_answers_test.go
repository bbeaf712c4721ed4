package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// fits reports whether the request may end with the error.
func (r *programRequest) fits(now time.Duration, err error) bool {
	switch {
	case errors.Is(err, actors.ErrCancelled), errors.Is(err, context.Canceled):
		return r.cancel
	case errors.Is(err, actors.ErrNotAcquired):
		return r.try
	case errors.Is(err, actors.ErrTimedOut):
		return r.timeout > 0 && now >= r.asked+r.timeout
	case errors.Is(err, actors.ErrSuspended):
		return r.try && r.w.faulty > 0
	case errors.Is(err, actors.ErrDeadlock):
		return r.named
	case errors.Is(err, actors.ErrSessionLost) && r.fails:
		return r.w.faulty > 0
	case errors.Is(err, actors.ErrSessionLost), errors.Is(err, actors.ErrNodeDeleted), errors.Is(err, actors.ErrHoldExpired):
		return r.named && !r.isAlone()
	case errors.Is(err, actors.ErrUnavailable):
		return r.w.faulty > 0 && (r.named || isLocal(r.path) || now > r.asked+unresolved*r.w.plan.session) // it may share what its owner, or its local queue, has asked for before
	case errors.Is(err, actors.ErrLimit):
		return r.p.limited
	case errors.Is(err, actors.ErrNoAuth):
		return r.asked < r.w.denied
	case errors.Is(err, actors.ErrSequenceExhausted):
		return r.w.overflow
	case errors.Is(err, actors.ErrClosed):
		return r.p.dead
	}
	return false
}

// unresolved is how many session timeouts it may not be known what became of a request.
const unresolved = 3

// isLocal reports whether the requests of a process for the lock share nodes.
func isLocal(path string) bool { return path == root+"/local" || path == root+"/rwlocal" }

// isAlone reports whether the owner has had no other request since this one: then there is no lost
// grant for which this one could be refused.
func (r *programRequest) isAlone() bool {
	return r.w.closed[r.owner] < r.asked && !slices.ContainsFunc(r.w.open, func(o *programRequest) bool { return o != r && o.owner == r.owner })
}

// checkLoss looks whether the grant may have ended so.
func (r *programRequest) checkLoss(now time.Duration) {
	if r.w.faulty == 0 && !errors.Is(r.over, actors.ErrHoldExpired) {
		r.w.fail(now, "%v was lost without a fault: %v", r, r.over)
	}
}

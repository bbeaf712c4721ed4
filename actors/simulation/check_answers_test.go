package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// isExpectedError reports whether the request may end with the error.
func (r *programRequest) isExpectedError(now time.Duration, err error) bool {
	switch {
	case errors.Is(err, actors.ErrCancelled), errors.Is(err, context.Canceled):
		return r.cancellable
	case errors.Is(err, actors.ErrNotAcquired):
		return r.try
	case errors.Is(err, actors.ErrTimedOut):
		return r.timeout > 0 && now >= r.requestedAt+r.timeout
	case errors.Is(err, actors.ErrSuspended):
		return r.try && r.sim.lastFault > 0
	case errors.Is(err, actors.ErrDeadlock):
		return r.named
	case errors.Is(err, actors.ErrSessionLost) && r.failOnSessionLoss:
		return r.sim.lastFault > 0
	case errors.Is(err, actors.ErrSessionLost), errors.Is(err, actors.ErrNodeDeleted), errors.Is(err, actors.ErrHoldExpired):
		return r.named && !r.isOnlyRequest()
	case errors.Is(err, actors.ErrUnavailable):
		return r.sim.lastFault > 0 && (r.named || isLocalQueue(r.path) || r.p.unknownTooLong(r.clockAtRequest)) // a request may share a node that another request of its owner or local queue has asked for earlier
	case errors.Is(err, actors.ErrLimit):
		return r.p.limited
	case errors.Is(err, actors.ErrNoAuth):
		return r.requestedAt < r.sim.deniedUntil
	case errors.Is(err, actors.ErrSequenceExhausted):
		return r.sim.numbersUsedUp
	case errors.Is(err, actors.ErrClosed):
		return r.p.dead
	case errors.Is(err, actors.ErrInvalid):
		return r.unreadable
	}
	return false
}

// unknownTooLong reports whether a request may fail because its outcome is unknown. The process has
// made the request at that time by its clock.
func (p *process) unknownTooLong(since time.Duration) bool {
	return p.clock() > since+outcomeUnknownTimeouts*p.sim.plan.sessionTimeout
}

// outcomeUnknownTimeouts is for how many session timeouts the outcome of a request may be unknown.
const outcomeUnknownTimeouts = 3

// isLocalQueue reports whether the lock has a local queue, whose requests share nodes.
func isLocalQueue(path string) bool { return path == root+"/local" || path == root+"/rwlocal" }

// isOnlyRequest reports whether the owner has had no other request since this one was made. Then
// the owner has no lost grant that could make this request fail.
func (r *programRequest) isOnlyRequest() bool {
	return r.sim.ownerEnded[r.owner] < r.requestedAt && !slices.ContainsFunc(r.sim.requests, func(o *programRequest) bool { return o != r && o.owner == r.owner })
}

// checkLoss checks that the grant may have ended for this reason.
func (r *programRequest) checkLoss(now time.Duration) {
	if r.sim.plan.keepsLeases && errors.Is(r.endErr, actors.ErrSessionLost) && !r.p.dead {
		r.sim.fail(now, "%v was lost by a fault that may not cost a client its lease: %v", r, r.endErr)
	}
	if r.sim.lastFault == 0 && !errors.Is(r.endErr, actors.ErrHoldExpired) {
		r.sim.fail(now, "%v was lost without a fault: %v", r, r.endErr)
	}
}

package shell

import (
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Counters count what became of the requests of owners, of all locks of a manager. The requests of
// one lock's actor to another are not counted. Any goroutine may read them.
type Counters struct {
	// Requested counts the requests that came to a lock, Acquired the grants, and Released the
	// grants that their owners have given back.
	Requested, Acquired, Released atomic.Uint64
	// Lost counts the grants that ended otherwise, and Refused the requests that were never granted,
	// by reason.
	Lost, Refused [ReasonCount]atomic.Uint64
	// LocalHandOffs counts the nodes that were granted because a contender of this process left,
	// RemoteHandOffs those that were granted because the node of another process went.
	LocalHandOffs, RemoteHandOffs atomic.Uint64

	unreleased atomic.Int64 // lost grants of named owners, which have yet to release them
}

// ReasonCount is above the numbers of all reasons.
const ReasonCount = 32

// heldAndWaiting returns how many grants hold and how many requests wait. A request that ends
// meanwhile may still count, but neither number is negative.
func (c *Counters) heldAndWaiting() (held, waiting int) {
	var lost, refused uint64 // read before the numbers that they are subtracted from
	for reason := range ReasonCount {
		lost += c.Lost[reason].Load()
		refused += c.Refused[reason].Load()
	}
	released := c.Released.Load()
	acquired := c.Acquired.Load()
	return int(acquired - released - lost), int(c.Requested.Load() - acquired - refused)
}

// now returns when the message in hand was received, or outside Receive the Now of the Bridge. One
// reading of the clock for each message spares an acquire within the process 10 % of its time.
func (s *Shell) now() time.Duration {
	if s.handledAt == 0 {
		return s.Manager.Bridge.Now()
	}
	return s.handledAt
}

// countGrant counts a grant of the request. It must come before the owner hears of the grant.
func (s *Shell) countGrant(r *Request, granted *messages.Granted, step uint32) {
	now := s.now()
	if !r.FromLockActor {
		s.Manager.Counters.Acquired.Add(1)
		if m := r.monitor(); m != nil {
			m.Granted(now-r.since, granted, step)
		}
	}
	r.since = now
}

// countRelease counts the end of a grant that its owner has given back.
func (s *Shell) countRelease(r *Request) {
	if r.Holds() {
		s.countEnd(r, &s.Manager.Counters.Released, 0)
	}
}

// countRefusal counts the end of a request that was not granted; or of a grant, which its owner has
// withdrawn.
func (s *Shell) countRefusal(r *Request, reason messages.Reason) {
	if r.Granted {
		s.countRelease(r)
	} else {
		s.countEnd(r, &s.Manager.Counters.Refused[reason], reason)
	}
}

// countLoss counts the loss of a grant, unless it has been released.
func (s *Shell) countLoss(r *Request, reason messages.Reason) {
	if r.Holds() {
		s.countEnd(r, &s.Manager.Counters.Lost[reason], reason)
	}
}

// countEnd adds to the number and notifies the monitor, at the end of a request or of its grant.
func (s *Shell) countEnd(r *Request, number *atomic.Uint64, reason messages.Reason) {
	if r.FromLockActor {
		return
	}
	number.Add(1)
	switch m := r.monitor(); {
	case m == nil:
	case r.Granted:
		m.Ended(s.now()-r.since, reason)
	default:
		m.Refused(s.now()-r.since, reason)
	}
}

// CountHandOff counts a grant that followed the end of another contender.
func (s *Shell) CountHandOff(local bool) {
	if local {
		s.Manager.Counters.LocalHandOffs.Add(1)
	} else {
		s.Manager.Counters.RemoteHandOffs.Add(1)
	}
}

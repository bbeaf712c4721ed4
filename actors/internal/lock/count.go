package lock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// now returns when the message in hand was received, or outside Receive the Now of the Bridge. One
// reading of the clock for each message spares an acquire within the process 10 % of its time.
func (s *Actor) now() time.Duration {
	if s.handledAt == 0 {
		return s.Manager.Bridge.Now()
	}
	return s.handledAt
}

// countGrant counts a grant of the request. It must come before the owner hears of the grant.
func (s *Actor) countGrant(r *Request, granted *messages.Granted, step uint32) {
	now := s.now()
	if !r.FromLockActor {
		s.Tally.Acquired.Add(1)
		if m := r.monitor(); m != nil {
			m.Granted(now-r.since, TokenOf(granted, step))
		}
	}
	r.since = now
}

// countRelease counts the end of a grant that its owner has given back.
func (s *Actor) countRelease(r *Request) {
	if r.Holds() {
		s.countEnd(r, &s.Tally.Released, 0)
	}
}

// countRefusal counts the end of a request that was not granted; or of a grant, which its owner has
// withdrawn.
func (s *Actor) countRefusal(r *Request, reason messages.Reason) {
	if r.Granted != nil {
		s.countRelease(r)
	} else {
		s.countEnd(r, &s.Tally.Refused[reason], reason)
	}
}

// countLoss counts the loss of a grant, unless it has been released.
func (s *Actor) countLoss(r *Request, reason messages.Reason) {
	if r.Holds() {
		s.countEnd(r, &s.Tally.Lost[reason], reason)
	}
}

// countEnd adds to the number and notifies the monitor, at the end of a request or of its grant.
func (s *Actor) countEnd(r *Request, number *atomic.Uint64, reason messages.Reason) {
	if r.FromLockActor {
		return
	}
	number.Add(1)
	switch m := r.monitor(); {
	case m == nil:
	case r.Granted != nil:
		m.Ended(s.now()-r.since, reason)
	default:
		m.Refused(s.now()-r.since, reason)
	}
}

// CountHandOff counts a grant that followed the end of another contender.
func (s *Actor) CountHandOff(local bool) {
	if local {
		s.Tally.LocalHandOffs.Add(1)
	} else {
		s.Tally.RemoteHandOffs.Add(1)
	}
}

func (s *Actor) beginMonitor(r *Request) {
	if s.Manager.Monitor == nil || r.FromLockActor {
		return
	}
	ctx := context.Background()
	if a := r.Acquisition(); a != nil {
		ctx = a.Context()
	}
	if m := s.Manager.Monitor(ctx, s.Entry, s.Recipe.KindName(r.Kind), r.OwnerName()); m != nil {
		r.needExtras().monitor = m
	}
}

func (r *Request) monitor() manager.RequestMonitor {
	if r.extras == nil {
		return nil
	}
	return r.extras.monitor
}

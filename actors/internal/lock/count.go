package lock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// now returns when the message in hand was received, or outside Receive the Now of the Bridge. One
// reading of the clock for each message spares an acquire within the process 10 % of its time.
func (l *Actor) now() time.Duration {
	if l.handledAt == 0 {
		return l.Manager.Bridge.Now()
	}
	return l.handledAt
}

// countGrant counts a grant of the request. It must come before the owner hears of the grant.
func (l *Actor) countGrant(r *Request, granted *messages.Granted, step uint32) {
	now := l.now()
	if !r.FromLockActor {
		l.Tally.Acquired.Add(1)
		if m := r.monitor(); m != nil {
			m.Granted(now-r.since, TokenOf(granted, step))
		}
	}
	r.since = now
}

// countRelease counts the end of a grant that its owner has given back.
func (l *Actor) countRelease(r *Request) {
	if r.Holds() {
		l.countEnd(r, &l.Tally.Released, 0)
	}
}

// countRefusal counts the end of a request that was not granted; or of a grant, which its owner has
// withdrawn.
func (l *Actor) countRefusal(r *Request, reason messages.Reason) {
	if r.Granted != nil {
		l.countRelease(r)
	} else {
		l.countEnd(r, &l.Tally.Refused[reason], reason)
	}
}

// countLoss counts the loss of a grant, unless it has been released.
func (l *Actor) countLoss(r *Request, reason messages.Reason) {
	if r.Holds() {
		l.countEnd(r, &l.Tally.Lost[reason], reason)
	}
}

// countEnd adds to the number and notifies the monitor, at the end of a request or of its grant.
func (l *Actor) countEnd(r *Request, number *atomic.Uint64, reason messages.Reason) {
	if r.FromLockActor {
		return
	}
	number.Add(1)
	switch m := r.monitor(); {
	case m == nil:
	case r.Granted != nil:
		m.Ended(l.now()-r.since, reason)
	default:
		m.Refused(l.now()-r.since, reason)
	}
}

// CountHandOff counts a grant that followed the end of another contender.
func (l *Actor) CountHandOff(local bool) {
	if local {
		l.Tally.LocalHandOffs.Add(1)
	} else {
		l.Tally.RemoteHandOffs.Add(1)
	}
}

func (l *Actor) beginMonitor(r *Request) {
	if l.Manager.Monitor == nil || r.FromLockActor {
		return
	}
	ctx := context.Background()
	if a := r.Acquisition(); a != nil {
		ctx = a.Context()
	}
	if m := l.Manager.Monitor(ctx, l.Entry, l.Recipe.KindName(r.Kind), r.OwnerName()); m != nil {
		r.needExtras().monitor = m
	}
}

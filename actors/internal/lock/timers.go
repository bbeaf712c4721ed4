package lock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// The limits of the time for which a request waits, and for which it holds.

// limit sets the limits of a new request.
func (l *Actor) limit(r *Request, wait, hold time.Duration) {
	if wait <= 0 && hold <= 0 {
		return
	}
	x := r.needExtras()
	x.wait, x.hold = wait, hold
	if wait > 0 {
		l.tellAfter(r, wait, waitExpired{r.ID})
	}
}

// failWithSession has a waiting request fail with the present session, or with the next one if the
// present one is over. The actor may hear of that loss later, but the loss is older than the request.
func (l *Actor) failWithSession(r *Request) {
	epoch := l.Manager.Session.Session().Epoch
	if l.Manager.Session.LostAt(epoch, l.now()) {
		epoch++
	}
	r.needExtras().epoch = epoch
}

func (l *Actor) tellAfter(r *Request, d time.Duration, msg any) {
	self := l.Self
	r.extras.timer = time.AfterFunc(d, func() { self.Tell(msg) })
}

func (r *Request) stopTimer() {
	if r.extras != nil && r.extras.timer != nil {
		r.extras.timer.Stop()
	}
}

// markGranted notes and counts the grant of a request. It must come before the owner hears of the grant.
func (l *Actor) markGranted(r *Request, granted *messages.Granted, step uint32) {
	now := l.now()
	l.holders, l.grantedAt = l.holders+1, now
	if !r.FromLockActor {
		l.Tally.Acquired.Add(1)
		if m := r.monitor(); m != nil {
			m.Granted(now-r.since, TokenOf(granted, step))
		}
	}
	r.since, r.Granted = now, granted
	r.stopTimer()
	if r.extras != nil && r.extras.hold > 0 {
		l.tellAfter(r, r.extras.hold-holdGrace(r.extras.hold), holdTime{r.ID})
	}
}

// holdGrace returns how long before the end of the time d a holder is asked to release.
func holdGrace(d time.Duration) time.Duration { return d / 4 }

// onHoldTime asks a holder to release, and ends its grant the next time.
func (l *Actor) onHoldTime(id requests.ID) {
	r := l.table.requests.At(id)
	switch {
	case r == nil || !r.Holds():
	case !r.extras.revoked:
		r.extras.revoked = true
		l.tellAfter(r, holdGrace(r.extras.hold), holdTime{id})
		l.RequestRevoke(r.ID)
	default:
		l.takeGrant(r, messages.Reason_HOLD_EXPIRED, "after "+r.extras.hold.String())
		l.awaitRelease(r)
	}
}

// endOverdueHold ends a grant whose time is over. Its timer has stood still if the machine was suspended.
func (l *Actor) endOverdueHold(r *Request) {
	if x := r.extras; x != nil && x.hold > 0 && r.Holds() && l.now()-r.since >= x.hold {
		r.stopTimer()
		x.revoked = true
		l.onHoldTime(r.ID)
	}
}

// TakeBack ends the request of an Acquisition that stands for an owner elsewhere, which has not
// released in time. A grant ends as by HoldAtMost, but needs no Release. Why is why the owner lost it.
type TakeBack struct {
	From Acquisition
	Why  messages.Reason
}

func (l *Actor) takeBack(t TakeBack) {
	r := l.table.requests.At(*t.From.RequestID())
	switch {
	case r == nil || r.Released:
	case r.Holds():
		l.takeGrant(r, t.Why, "")
		l.Remove(r)
	default:
		l.cancel(r, messages.Reason_CANCELLED)
	}
}

// takeGrant ends a grant whose owner has not released it in time. The owner gets Lost first, and then
// the next contender gets the lock.
func (l *Actor) takeGrant(r *Request, why messages.Reason, detail string) {
	r.takenBack = true
	l.tellLost(r, why, detail)
	l.behavior.Cancel(r, messages.Reason_CANCELLED)
}

// TakenBack reports whether the grant has ended because its owner has not released it in time.
func (r *Request) TakenBack() bool { return r.takenBack }

// now returns when the message in hand was received, or outside Receive the Now of the session. One
// reading of the clock for each message spares an acquire within the process 10 % of its time.
func (l *Actor) now() time.Duration {
	if l.handledAt == 0 {
		return l.Manager.Session.Now()
	}
	return l.handledAt
}

// countRelease counts the end of a grant that its owner has given back or withdrawn.
func (l *Actor) countRelease(r *Request) { l.countEnd(r, &l.Tally.Released, 0) }

// countRefusal counts the end of a request that was not granted; or of a grant, which its owner has
// withdrawn, or released in vain: ZooKeeper has not confirmed a release whose session is lost.
func (l *Actor) countRefusal(r *Request, reason messages.Reason) {
	switch {
	case r.Granted == nil:
		l.countEnd(r, &l.Tally.Refused[reason], reason)
	case r.Released && reason == messages.Reason_SESSION_LOST:
		l.countEnd(r, &l.Tally.Lost[reason], reason)
	default:
		l.countRelease(r)
	}
}

// countEnd adds to the number and notifies the monitor, at the end of a request or of its grant.
func (l *Actor) countEnd(r *Request, number *atomic.Uint64, reason messages.Reason) {
	if r.Granted != nil && !r.Released {
		l.holders--
	}
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

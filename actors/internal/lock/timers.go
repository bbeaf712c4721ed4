package lock

import (
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
	epoch := l.Manager.Bridge.Session().Epoch
	if l.Manager.Bridge.LostAt(epoch, l.now()) {
		epoch++
	}
	r.needExtras().epoch = epoch
}

func (r *Request) failsWithSession(epoch uint64) bool {
	return r.extras != nil && r.extras.epoch != 0 && r.extras.epoch <= epoch
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

// markGranted notes the grant of a request. It must come before the owner hears of the grant.
func (l *Actor) markGranted(r *Request, granted *messages.Granted, step uint32) {
	l.countGrant(r, granted, step)
	r.Granted = granted
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
		l.expireHold(r)
	}
}

// expireHold ends a grant when the time of HoldAtMost is over. The owner gets Lost first, and then
// the next contender gets the lock.
func (l *Actor) expireHold(r *Request) {
	l.tellLost(r, messages.Reason_HOLD_EXPIRED, "after "+r.extras.hold.String())
	l.behavior.Cancel(r, messages.Reason_CANCELLED)
	l.awaitRelease(r)
}

// HoldExpired reports whether the grant has ended because it was held for too long.
func (r *Request) HoldExpired() bool { return r.lost == messages.Reason_HOLD_EXPIRED }

package lock

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// The limits of the time for which a request waits, and for which it holds.

// extras are what few requests have. A limit of 0 is none.
type extras struct {
	wait, hold time.Duration
	epoch      uint64      // of the first session with which the request fails while it waits; 0 for none
	timer      *time.Timer // until the next message about a limit; nil if there was none yet
	revoked    bool        // the holder was asked to release at the end of hold
	monitor    manager.RequestMonitor
	sender     *watchedSender // of a request that an actor has sent
	alias      *actor.PID     // the PID from which a future got Granted
}

func (r *Request) needExtras() *extras {
	if r.extras == nil {
		r.extras = &extras{}
	}
	return r.extras
}

// limit sets the limits of a new request.
func (s *Actor) limit(r *Request, wait, hold time.Duration) {
	if wait <= 0 && hold <= 0 {
		return
	}
	x := r.needExtras()
	x.wait, x.hold = wait, hold
	if wait > 0 {
		s.tellAfter(r, wait, waitExpired{r.ID})
	}
}

// failWithSession has a waiting request fail with its session: the present one or, if that is over already, the next. In
// the latter case the actor has yet to hear of the loss, which is older than the request.
func (s *Actor) failWithSession(r *Request) {
	epoch := s.Manager.Bridge.Session().Epoch
	if s.Manager.Bridge.LostAt(epoch, s.now()) {
		epoch++
	}
	r.needExtras().epoch = epoch
}

func (r *Request) failsWithSession(epoch uint64) bool {
	return r.extras != nil && r.extras.epoch != 0 && r.extras.epoch <= epoch
}

func (s *Actor) tellAfter(r *Request, d time.Duration, msg any) {
	self := s.Self
	r.extras.timer = time.AfterFunc(d, func() { self.Tell(msg) })
}

func (r *Request) stopTimer() {
	if r.extras != nil && r.extras.timer != nil {
		r.extras.timer.Stop()
	}
}

// markGranted notes the grant of a request. It must come before the owner hears of the grant.
func (s *Actor) markGranted(r *Request, granted *messages.Granted, step uint32) {
	s.countGrant(r, granted, step)
	r.Granted = granted
	r.stopTimer()
	if r.extras != nil && r.extras.hold > 0 {
		s.tellAfter(r, r.extras.hold-holdGrace(r.extras.hold), holdTime{r.ID})
	}
}

// holdGrace returns how long before the end of the time d a holder is asked to release.
func holdGrace(d time.Duration) time.Duration { return d / 4 }

// onHoldTime asks a holder to release, and ends its grant the next time.
func (s *Actor) onHoldTime(id requests.ID) {
	r := s.table.requests.At(id)
	switch {
	case r == nil || !r.Holds():
	case !r.extras.revoked:
		r.extras.revoked = true
		s.tellAfter(r, holdGrace(r.extras.hold), holdTime{id})
		s.RequestRevoke(r.ID)
	default:
		s.expireHold(r)
	}
}

// expireHold ends a grant when the time of HoldAtMost is over. The owner gets Lost first, and then the
// next contender gets the lock.
func (s *Actor) expireHold(r *Request) {
	s.tellLost(r, messages.Reason_HOLD_EXPIRED, "after "+r.extras.hold.String())
	s.behavior.Cancel(r, messages.Reason_CANCELLED)
	s.awaitRelease(r)
}

// HoldExpired reports whether the grant has ended because it was held for too long.
func (r *Request) HoldExpired() bool { return r.lost == messages.Reason_HOLD_EXPIRED }

// cancel withdraws a request.
func (s *Actor) cancel(r *Request, reason messages.Reason) {
	if r.lost == 0 {
		s.behavior.Cancel(r, reason)
		return
	}
	s.forgetLost(r)
	r.Tell(s.refusal(r.Number(), reason, ""))
}

// failWaiting ends the waiting requests of owners that match, at once: a request that waited for its
// turn in the mailbox could be granted before.
func (s *Actor) failWaiting(reason messages.Reason, match func(*Request) bool) {
	for _, r := range s.Requests() {
		if r.Granted == nil && !r.FromLockActor && match(r) {
			s.behavior.Cancel(r, reason)
		}
	}
}

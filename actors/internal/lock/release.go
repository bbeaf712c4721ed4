package lock

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Cancel implements messages.LockHandler.
func (s lockHandler) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := s.Lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		s.cancel(r, messages.Reason_CANCELLED)
	}
}

// Release implements messages.LockHandler.
func (s lockHandler) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	r := s.Lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || r.Granted == nil || r.Released {
		tell(from, s.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return
	}
	s.countRelease(r)
	r.Released, r.releaser = true, from
	if r.lost != 0 {
		s.forgetLost(r)
		tell(from, s.refusal(r.Number(), r.lost, ""))
		return
	}
	s.behavior.Release(r)
}

// ConfirmRelease ends a request whose release is done. stillHeld other requests of its owner
// hold the lock yet.
func (s *Actor) ConfirmRelease(id requests.ID, stillHeld int) {
	r := s.Request(id)
	s.Remove(r)
	answer := plainReleased
	if r.Acquisition() == nil {
		answer = &messages.Released{RequestId: r.Number(), StillHeld: uint32(stillHeld)}
	}
	tell(r.releaser, answer)
}

// plainReleased is the answer to Acquisitions, which do not read it.
var plainReleased = &messages.Released{}

package lock

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Cancel implements messages.LockHandler.
func (l lockHandler) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := l.Lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		l.cancel(r, messages.Reason_CANCELLED)
	}
}

// cancel withdraws a request.
func (l *Actor) cancel(r *Request, reason messages.Reason) {
	if r.lost == 0 {
		l.behavior.Cancel(r, reason)
		return
	}
	l.forgetLost(r)
	r.Tell(l.refusal(r.Number(), reason, ""))
}

// Release implements messages.LockHandler.
func (l lockHandler) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	r := l.Lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || r.Granted == nil || r.Released {
		tell(from, l.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return
	}
	l.countRelease(r)
	r.Released, r.releaser = true, from
	if r.lost != 0 {
		l.forgetLost(r)
		tell(from, l.refusal(r.Number(), r.lost, ""))
		return
	}
	l.behavior.Release(r)
}

// ConfirmRelease ends a request whose release is done. stillHeld other requests of its owner
// hold the lock yet.
func (l *Actor) ConfirmRelease(id requests.ID, stillHeld int) {
	r := l.Request(id)
	l.Remove(r)
	answer := plainReleased
	if r.Acquisition() == nil {
		answer = &messages.Released{RequestId: r.Number(), StillHeld: uint32(stillHeld)}
	}
	tell(r.releaser, answer)
}

// plainReleased is the answer to Acquisitions, which do not read it.
var plainReleased = &messages.Released{}

// The request of a lost grant stays open until its named owner has released it, except of a
// semaphore. Until then the owner's further requests are refused: a re-entry could turn into a new
// grant, unnoticed by the part of the program that relies on the lost one. The recipe does not know
// a lost grant any more.

// tellLost tells the owner that its grant is lost.
func (l *Actor) tellLost(r *Request, why messages.Reason, detail string) {
	l.countLoss(r, why)
	r.lost = why
	r.notify(&messages.Lost{RequestId: r.Number(), Reason: why, Detail: JoinDetail(l.Path, detail)})
}

// awaitRelease keeps the request of a lost grant until its owner has released it. It removes the
// request at once if the owner has no name or the lock is a semaphore: these have no re-entry to
// refuse.
func (l *Actor) awaitRelease(r *Request) {
	owner := r.OwnerName()
	if owner == "" || l.Recipe.MaxPermits > 0 {
		l.Remove(r)
		return
	}
	l.lost.Add(owner, r)
	l.noteGrantEnd(r)
	if !r.FromLockActor {
		l.Manager.CountUnreleased(1)
	}
}

// forgetLost removes the request of a lost grant that its owner has released.
func (l *Actor) forgetLost(r *Request) {
	l.lost.Remove(r.OwnerName(), func(o *Request) bool { return o == r })
	if !r.FromLockActor {
		l.Manager.CountUnreleased(-1)
	}
	l.Remove(r)
}

// LostBy returns why a named owner has lost a grant that it has not released; 0 if there is none.
// Grants of other locks' actors do not count: these release at once what they have lost.
func (l *Actor) LostBy(owner string) messages.Reason {
	for _, r := range l.lost[owner] {
		if !r.FromLockActor {
			return r.lost
		}
	}
	return 0
}

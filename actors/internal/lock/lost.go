package lock

import "github.com/actorlock/actorlock/messages"

// The request of a lost grant stays open until its named owner has released it, except of a semaphore. Until
// then the owner's further requests are refused: a re-entry could turn into a new grant, unnoticed by the part
// of the program that relies on the lost one. The recipe does not know a lost grant any more.

// tellLost tells the owner that its grant is lost.
func (s *Actor) tellLost(r *Request, why messages.Reason, detail string) {
	s.countLoss(r, why)
	r.lost = why
	r.notify(&messages.Lost{RequestId: r.Number(), Reason: why, Detail: JoinDetail(s.Path, detail)})
}

// awaitRelease keeps the request of a lost grant until its owner has released it. It removes the request at once
// if the owner has no name or the lock is a semaphore: these have no re-entry to refuse.
func (s *Actor) awaitRelease(r *Request) {
	owner := r.OwnerName()
	if owner == "" || s.Recipe.MaxPermits > 0 {
		s.Remove(r)
		return
	}
	s.lost.Add(owner, r)
	s.noteGrantEnd(r)
	if !r.FromLockActor {
		s.Manager.CountUnreleased(1)
	}
}

// forgetLost removes the request of a lost grant that its owner has released.
func (s *Actor) forgetLost(r *Request) {
	s.lost.Remove(r.OwnerName(), func(o *Request) bool { return o == r })
	if !r.FromLockActor {
		s.Manager.CountUnreleased(-1)
	}
	s.Remove(r)
}

// LostBy returns why a named owner has lost a grant that it has not released; 0 if there is none. Grants
// of other locks' actors do not count: these release at once what they have lost.
func (s *Actor) LostBy(owner string) messages.Reason {
	for _, r := range s.lost[owner] {
		if !r.FromLockActor {
			return r.lost
		}
	}
	return 0
}

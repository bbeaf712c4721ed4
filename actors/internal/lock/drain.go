package lock

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// noteGrantEnd is called when a grant has ended, in whatever way.
func (s *Actor) noteGrantEnd(r *Request) {
	if r.Granted != nil && !r.FromLockActor && s.Manager.RefusesNew() {
		s.Self.Tell(manager.RefuseWaiting{})
	}
}

// refuseWaiting ends the requests that wait. An owner that holds the lock may wait to enter it again.
func (s *Actor) refuseWaiting() {
	s.failWaiting(messages.Reason_DRAINING, func(r *Request) bool { return !s.holds(r.OwnerName()) })
}

// holds reports whether a named owner holds the lock.
func (s *Actor) holds(owner string) bool {
	if owner == "" {
		return false
	}
	for _, r := range s.Requests() {
		if r.Holds() && r.OwnerName() == owner {
			return true
		}
	}
	return false
}

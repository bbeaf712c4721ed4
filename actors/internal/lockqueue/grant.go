package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// grantEligible grants the contenders that may hold. Step calls it after every event. It looks at those of nextToHold (entry.go):
// the first of each kind that wait. If one may not hold yet, it asks for what will report the next
// change: a list, a watch or a proof. The contenders behind wait for the same, or for a contender
// of nextToHold.
func (s *State) grantEligible() {
	for slices.ContainsFunc(s.nextToHold(), func(c *contender) bool { return s.tryGrant(c.entry) }) {
		// tryGrant has granted a contender, or refused tries: look at the next ones.
	}
}

// tryGrant grants an entry of nextToHold if nothing blocks it and its node is proven to exist. It
// reports whether it has granted the entry or refused tries: others may be next then.
func (s *State) tryGrant(e *entry) bool {
	if !s.placeKnown(e) {
		s.listGap(e) // a contender that is not known yet may be ahead
		return false
	}
	switch {
	case s.blockersAhead(e.kind, e.seq) >= s.rule.Permits:
		return s.awaitBlockers(e)
	case s.rule.BlockedBy[e.kind]&s.unseenDowngrades != 0:
		// The contender ahead may have left a downgrade at its place.
		if s.listing.serial == 0 {
			s.requestList()
		}
		return false
	case s.delay != nil: // a held marker is being made or deleted: see delay.go
		return false
	case !s.proven(e):
		s.prove(e)
		return false
	}
	s.grant(e)
	return true
}

// grant ends the wait of an entry that may hold. Under a rule with Delay its held marker comes
// first.
func (s *State) grant(e *entry) {
	s.stopWaiting(e)
	s.holders = insert(s.holders, &e.contender)
	if s.rule.Delay {
		s.createHeldMarker(e)
		return
	}
	s.hold(e)
}

// hold grants all requests of an entry.
func (s *State) hold(e *entry) {
	e.stage = held
	for i := range e.requests {
		s.grantRequest(e, e.requests[i].id)
	}
	s.notifyRevoked(e, e.requests) // if a client has asked for the lock before
	s.watchRevocable(e)
}

func (s *State) grantRequest(e *entry, id requests.ID) {
	f := s.add(requests.Grant, id)
	f.Node, f.Token = e.name, e.token
}

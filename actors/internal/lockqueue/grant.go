package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// grantEligible grants the contenders that may hold. Step calls it after every event. It looks at
// those of nextToHold: the first of each kind that wait. If one may not hold yet, it asks for what
// will report the next change: a list, a watch or a proof. The contenders behind wait for the same,
// or for a contender of nextToHold.
func (s *State) grantEligible() {
	for again := true; again; { // others may be next when one has been granted, or its tries refused
		again = slices.ContainsFunc(s.nextToHold(), func(c *contender) bool { return s.tryGrant(c.entry) })
	}
}

// tryGrant grants an entry of nextToHold, without a request to ZooKeeper, if all of these hold:
//
//   - placeKnown (list.go): this process knows all contenders ahead.
//   - blockersAhead (view.go): fewer of them block it than the rule has permits.
//   - No list has yet to show a downgrade ahead, and no held marker is being made or deleted.
//   - proven (proof.go): its node was seen after the last departure that this process has heard of.
//
// It reports whether it has granted the entry or refused tries: others may be next then.
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

// awaitBlockers asks for what reports the departure of the blockers of e, and returns false. It
// returns true if it has refused tries instead: another contender may be granted now.
func (s *State) awaitBlockers(e *entry) (refused bool) {
	blockers := s.nearestBlockers(e)
	_, foreign, lastSeen := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	switch {
	case s.waitingTries > 0 && s.refuseTries(e, lastSeen):
		return true
	case foreign && s.listing.serial != 0: // a list is on its way, and Listed leads here again
	case foreign:
		s.watchBlockers(e, blockers)
	case s.departedSince(e): // blockers of this process must leave first: ask for the proof now, to have it by then
		s.prove(e)
	}
	return false
}

// watchBlockers asks for watches on e's node and on all blockers, or for a list.
//
// If a single departure is not enough for e, one blocker is there beside those that keep e waiting.
// After its departure a list shows the others that are left, while they still hold or wait. The
// next departure then lets e hold: it doubts all proofs of e's node but an active watch.
func (s *State) watchBlockers(e *entry, blockers []*contender) {
	unwatched, _, _ := s.unwatched(blockers)
	if len(blockers) > s.rule.Permits && len(unwatched) > 0 && s.departedSince(e) {
		s.requestList() // others may have gone with the one that departed: one list shows all that are left, and proves e
		return
	}
	if s.watches[e.name] == nil {
		unwatched = append(unwatched, e.name)
	}
	if len(unwatched) > 0 {
		s.requestWatch(unwatched, e.token.Czxid)
	}
}

// refuseTries refuses the tries of e, and of each contender that must wait at least as long as e.
// It reports whether there were any. lastSeen is the clock at which the contenders ahead were last
// known to exist. A try that came later stays: the lock may have become free in between.
func (s *State) refuseTries(e *entry, lastSeen uint64) (any bool) {
	for k := range s.waiting {
		if !keepsWaiting(s.rule, e.kind, queue.Kind(k)) {
			continue
		}
		for _, c := range slices.Clone(s.waiting[k][place(s.waiting[k], e.seq):]) {
			if w := c.entry; w.sentAt <= lastSeen && s.refuseTriesOf(w) {
				any = true
				if len(w.requests) == 0 {
					s.leave(w) // takes w out of waiting
				}
			}
		}
	}
	return any
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

func (ev Resize) apply(s *State) {
	rule := *s.rule
	rule.Permits = ev.Permits
	s.rule = &rule
}

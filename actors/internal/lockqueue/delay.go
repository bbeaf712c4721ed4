package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The lock-delay. A holder makes a held marker, which a clean release deletes and which stays
// after any other end of the grant. The next holder makes a held marker of its own. It waits for the
// delay before that if it finds another's.

// delay is what is under way about the held marker: one effect at most.
type delay struct {
	entry          *entry     // the entry that is to hold (makingMarker), or leaves; nil: nothing is under way
	kind           EffectKind // of the effect that is to be answered
	serial         uint64     // of that effect
	outcomeUnknown bool       // an answer was lost: a held marker that exists may be the entry's own
	elapsed        bool       // the delay has been waited for
}

// createHeldMarker has the contender make its held marker before it holds.
func (s *State) createHeldMarker(c *entry) {
	c.stage = makingMarker
	s.delay = delay{entry: c}
	s.requestMarker(CreateHeldMarker)
}

// deleteCleanly ends what a contender holds: its node is deleted, together with the held marker if
// the rule has a delay.
func (s *State) deleteCleanly(c *entry) {
	if !s.rule.Delay {
		s.deleteNode(c)
		return
	}
	c.stage = leaving
	s.delay = delay{entry: c}
	if s.contention.requested { // as in deleteNode
		s.contention.deleteAfter = append(s.contention.deleteAfter, c)
		return
	}
	s.requestMarker(DeleteWithHeldMarker)
}

func (s *State) requestMarker(do EffectKind) {
	s.lastSerial++
	s.delay.kind, s.delay.serial = do, s.lastSerial
	s.effect(Effect{Kind: do, Serial: s.lastSerial, Node: s.delay.entry.name})
}

// abandonDelay ends the wait for the end of the delay after Close, when there is no DelayElapsed, and
// reports whether there was such a wait: then the contender leaves at once.
func (s *State) abandonDelay() bool {
	if s.closed == 0 || s.delay.kind != StartDelay {
		return false
	}
	s.delay = delay{}
	return true
}

// awaitsMarker reports whether an answer is about the held marker.
func (s *State) awaitsMarker(serial uint64) bool {
	return s.delay.entry != nil && s.delay.serial == serial
}

func (e Transacted) apply(s *State) {
	if !s.awaitsMarker(e.Serial) {
		return
	}
	const node = 0 // the operation on the contender's node
	switch m := &s.delay; {
	case m.kind == DeleteWithHeldMarker:
		s.deletedCleanly(e.Done)
	case e.Done:
		s.heldMarkerMade()
	case e.Op == node:
		s.ownNodeDeleted(m.entry)
	case m.kind == ReplaceHeldMarker: // another client has deleted the held marker meanwhile
		s.requestMarker(CreateHeldMarker)
	case m.elapsed:
		s.requestMarker(ReplaceHeldMarker)
	case m.outcomeUnknown:
		s.requestMarker(ReadHeldMarker)
	default:
		s.startDelay()
	}
	s.grantEligible()
}

// heldMarkerRead takes the answer to ReadHeldMarker: the data of the held marker, if there is one.
func (s *State) heldMarkerRead(e Watched) {
	for _, data := range e.Data {
		if string(data) == s.delay.entry.name {
			s.heldMarkerMade()
		} else {
			s.startDelay()
		}
		return
	}
	s.requestMarker(CreateHeldMarker)
}

// startDelay waits because of a holder that did not end cleanly. It waits even if all requests have
// ended: otherwise requests that wait less than the delay would never get the lock.
func (s *State) startDelay() {
	c := s.delay.entry
	if s.closed != 0 {
		s.delay = delay{}
		s.removeFromList(&c.contender)
		s.deleteNode(c)
		return
	}
	for i := len(c.requests) - 1; i >= 0; i-- {
		if r := c.requests[i]; r.try {
			s.drop(c, r.id)
			s.refuse(r.id, requests.NotAcquired)
		}
	}
	s.requestMarker(StartDelay)
}

func (e DelayElapsed) apply(s *State) {
	if !s.awaitsMarker(e.Serial) {
		return
	}
	s.delay.elapsed = true
	if len(s.delay.entry.requests) > 0 {
		s.requestMarker(ReplaceHeldMarker)
	} else {
		s.leaveCleanly()
	}
	s.grantEligible()
}

// heldMarkerMade goes on once the contender's held marker exists.
func (s *State) heldMarkerMade() {
	c := s.delay.entry
	if len(c.requests) == 0 {
		s.leaveCleanly()
		return
	}
	s.delay = delay{}
	s.hold(c)
}

func (s *State) leaveCleanly() {
	s.removeFromList(&s.delay.entry.contender)
	s.deleteCleanly(s.delay.entry)
}

func (s *State) deletedCleanly(done bool) {
	c := s.delay.entry
	c.mayBeDeleted = s.delay.outcomeUnknown
	s.delay = delay{}
	if done {
		s.deleteAcked(c)
	} else {
		s.deleteNode(c) // one of both was missing: have the node deleted
	}
}

// markerFailed takes a Failed that answers an effect about the held marker.
func (s *State) markerFailed(why requests.Reason) {
	switch m := &s.delay; {
	case s.closed != 0 && (why == requests.SessionLost || why == requests.Closed): // the node goes with the session
		delete(s.entries, m.entry.serial)
		s.delay = delay{}
	case why == requests.OutcomeUnknown: // repeat it: the result is the same if it was done before
		m.outcomeUnknown = true
		s.requestMarker(m.kind)
	case m.kind == ReadHeldMarker: // take it for another's
		s.startDelay()
	case m.kind == DeleteWithHeldMarker:
		s.effect(Effect{Kind: ReportHeldMarker, Reason: why})
		s.deletedCleanly(false)
	default:
		c := m.entry
		s.delay = delay{}
		s.refuseEach(c, why)
		s.removeFromList(&c.contender)
		s.deleteNode(c)
	}
}

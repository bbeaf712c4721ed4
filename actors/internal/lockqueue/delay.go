package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The lock-delay. Who holds leaves a mark, which goes with a clean release and
// stays after any other end. Who is to hold next makes one of its own, and waits
// before that where it finds another's.

// mark is what is under way about the mark.
type delay struct {
	entry          *entry     // that is to hold, or leaves; nil: nothing is under way
	kind           EffectKind // which effect is to be answered
	serial         uint64     // under this number
	outcomeUnknown bool       // an answer was lost: a mark that is there may be c's own
	elapsed        bool       // for as long as is due
}

// startMarking has the contender make its mark before it holds.
func (s *State) createHeldMarker(c *entry) {
	c.stage = makingMarker
	s.delay = delay{entry: c}
	s.requestMarker(CreateHeldMarker)
}

// clear ends what a contender holds cleanly: its node goes, and with it the mark, if
// there is one.
func (s *State) deleteCleanly(c *entry) {
	if !s.rule.Delay {
		s.deleteNode(c)
		return
	}
	c.stage = leaving
	s.delay = delay{entry: c}
	if s.contention.requested { // as in delete
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

// abandonsDelay reports whether a contender leaves that waits for the delay to end: after
// Close nothing tells the State of the end.
func (s *State) abandonsDelay() bool {
	if s.closed == 0 || s.delay.kind != StartDelay {
		return false
	}
	s.delay = delay{}
	return true
}

// marks tells whether an answer is about the mark.
func (s *State) awaitsMarker(serial uint64) bool {
	return s.delay.entry != nil && s.delay.serial == serial
}

func (e Transacted) apply(s *State) {
	if !s.awaitsMarker(e.Serial) {
		return
	}
	const node = 0 // the operation on the contender's own
	switch m := &s.delay; {
	case m.kind == DeleteWithHeldMarker:
		s.deletedCleanly(e.Done)
	case e.Done:
		s.heldMarkerMade()
	case e.Op == node:
		s.ownNodeDeleted(m.entry)
	case m.kind == ReplaceHeldMarker: // somebody has taken the mark away meanwhile
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

// looked is for the answer to DoLook: it has the data of the mark, if there is one.
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

// delay is for a mark of another, which did not end cleanly. The time is waited for
// even if nobody wants the lock any more: else those who wait less would never get it.
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

// marked is for a contender whose mark is made.
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
		s.deleteNode(c) // one of both was not there: see to it that the node goes
	}
}

// markFailed is for an effect about the mark that was answered by Failed.
func (s *State) markerFailed(why requests.Reason) {
	switch m := &s.delay; {
	case s.closed != 0 && (why == requests.SessionLost || why == requests.Closed): // the node goes with the session
		delete(s.entries, m.entry.serial)
		s.delay = delay{}
	case why == requests.SessionLost: // the session's own event says what follows
	case why == requests.OutcomeUnknown: // do it again: it is the same if it was done before
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

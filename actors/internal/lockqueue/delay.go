package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The lock-delay. Who holds leaves a mark, which goes with a clean release and
// stays after any other end. Who is to hold next makes one of its own, and waits
// before that where it finds another's.

// mark is what is under way about the mark.
type mark struct {
	c      *contender // that is to hold, or leaves; nil: nothing is under way
	do     EffectKind // which effect is to be answered
	serial uint64     // under this number
	doubt  bool       // an answer was lost: a mark that is there may be c's own
	waited bool       // for as long as is due
}

// startMarking has the contender make its mark before it holds.
func (s *State) startMarking(c *contender) {
	c.stage = marking
	s.mark = mark{c: c}
	s.markBy(CreateHeldMarker)
}

// clear ends what a contender holds cleanly: its node goes, and with it the mark, if
// there is one.
func (s *State) clear(c *contender) {
	if !s.rule.Delay {
		s.delete(c)
		return
	}
	c.stage = leaving
	s.mark = mark{c: c}
	if s.outlook.coming { // as in delete
		s.outlook.before = append(s.outlook.before, c)
		return
	}
	s.markBy(DeleteWithHeldMarker)
}

func (s *State) markBy(do EffectKind) {
	s.serials++
	s.mark.do, s.mark.serial = do, s.serials
	s.effect(Effect{Kind: do, Serial: s.serials, Node: s.mark.c.name})
}

// abandonsDelay reports whether a contender leaves that waits for the delay to end: after
// Close nothing tells the State of the end.
func (s *State) abandonsDelay() bool {
	if s.closed == 0 || s.mark.do != StartDelay {
		return false
	}
	s.mark = mark{}
	return true
}

// marks tells whether an answer is about the mark.
func (s *State) marks(serial uint64) bool { return s.mark.c != nil && s.mark.serial == serial }

func (e Transacted) apply(s *State) {
	if !s.marks(e.Serial) {
		return
	}
	const node = 0 // the operation on the contender's own
	switch m := &s.mark; {
	case m.do == DeleteWithHeldMarker:
		s.cleared(e.Done)
	case e.Done:
		s.marked()
	case e.Op == node:
		s.vanish(m.c)
	case m.do == ReplaceHeldMarker: // somebody has taken the mark away meanwhile
		s.markBy(CreateHeldMarker)
	case m.waited:
		s.markBy(ReplaceHeldMarker)
	case m.doubt:
		s.markBy(ReadHeldMarker)
	default:
		s.delay()
	}
	s.settle()
}

// looked is for the answer to DoLook: it has the data of the mark, if there is one.
func (s *State) looked(e Watched) {
	for _, data := range e.Data {
		if string(data) == s.mark.c.name {
			s.marked()
		} else {
			s.delay()
		}
		return
	}
	s.markBy(CreateHeldMarker)
}

// delay is for a mark of another, which did not end cleanly. The time is waited for
// even if nobody wants the lock any more: else those who wait less would never get it.
func (s *State) delay() {
	c := s.mark.c
	if s.closed != 0 {
		s.mark = mark{}
		s.delist(c)
		s.delete(c)
		return
	}
	for i := len(c.requests) - 1; i >= 0; i-- {
		if r := c.requests[i]; r.try {
			s.drop(c, r.id)
			s.refuse(r.id, requests.NotAcquired)
		}
	}
	s.markBy(StartDelay)
}

func (e DelayElapsed) apply(s *State) {
	if !s.marks(e.Serial) {
		return
	}
	s.mark.waited = true
	if len(s.mark.c.requests) > 0 {
		s.markBy(ReplaceHeldMarker)
	} else {
		s.leaveMarked()
	}
	s.settle()
}

// marked is for a contender whose mark is made.
func (s *State) marked() {
	c := s.mark.c
	if len(c.requests) == 0 {
		s.leaveMarked()
		return
	}
	s.mark = mark{}
	s.hold(c)
}

func (s *State) leaveMarked() {
	s.delist(s.mark.c)
	s.clear(s.mark.c)
}

func (s *State) cleared(done bool) {
	c := s.mark.c
	c.mayBeGone = s.mark.doubt
	s.mark = mark{}
	if done {
		s.gone(c)
	} else {
		s.delete(c) // one of both was not there: see to it that the node goes
	}
}

// markFailed is for an effect about the mark that was answered by Failed.
func (s *State) markFailed(why requests.Reason) {
	switch m := &s.mark; {
	case s.closed != 0 && (why == requests.SessionLost || why == requests.Closed): // the node goes with the session
		delete(s.ours, m.c.serial)
		s.mark = mark{}
	case why == requests.SessionLost: // the session's own event says what follows
	case why == requests.OutcomeUnknown: // do it again: it is the same if it was done before
		m.doubt = true
		s.markBy(m.do)
	case m.do == ReadHeldMarker: // take it for another's
		s.delay()
	case m.do == DeleteWithHeldMarker:
		s.effect(Effect{Kind: ReportHeldMarker, Reason: why})
		s.cleared(false)
	default:
		c := m.c
		s.mark = mark{}
		s.refuseEach(c, why)
		s.delist(c)
		s.delete(c)
	}
}

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The lock-delay. A holder makes a held marker, which a clean release deletes and which stays after
// any other end of the grant. The next holder makes a held marker of its own. It waits for the
// delay before that if it finds another's.

func (ev Transacted) apply(s *State) {
	if ev.Serial == s.numbers.deletion {
		s.directoryDeleted(ev.Done)
	}
	if !s.awaitsMarker(ev.Serial) {
		return
	}
	const node = 0 // the operation on the contender's node
	switch m := s.delay; {
	case m.kind == requests.DeleteWithHeldMarker:
		s.deletedCleanly(ev.Done)
	case ev.Done:
		m.entry.provenAt = max(m.entry.provenAt, m.askedAt) // the transaction checks that the node exists
		s.heldMarkerMade()
	case ev.Op == node:
		s.ownNodeDeleted(m.entry)
	case m.kind == requests.ReplaceHeldMarker: // another client has deleted the held marker meanwhile
		s.requestMarker(requests.CreateHeldMarker)
	case m.elapsed:
		s.requestMarker(requests.ReplaceHeldMarker)
	case m.outcomeUnknown:
		s.requestMarker(requests.ReadHeldMarker)
	default:
		s.startDelay()
	}
}

// heldMarkerRead takes the answer to ReadHeldMarker: the data of the held marker, if there is one.
func (s *State) heldMarkerRead(ev Watched) {
	for _, data := range ev.Data {
		if string(data) == s.delay.entry.name {
			s.heldMarkerMade()
		} else {
			s.startDelay()
		}
		return
	}
	s.requestMarker(requests.CreateHeldMarker)
}

// startDelay waits because of a holder that did not end cleanly. It waits even if all requests have
// ended: otherwise requests that wait less than the delay would never get the lock.
func (s *State) startDelay() {
	e := s.delay.entry
	if s.closed != 0 {
		s.delay = nil
		s.deleteNode(e)
		return
	}
	s.refuseTriesOf(e)
	s.requestMarker(requests.StartDelay)
}

func (ev DelayElapsed) apply(s *State) {
	if !s.awaitsMarker(ev.Serial) {
		return
	}
	s.delay.elapsed = true
	if len(s.delay.entry.requests) > 0 {
		s.requestMarker(requests.ReplaceHeldMarker)
	} else {
		s.deleteWithMarker(s.delay.entry)
	}
}

// heldMarkerMade goes on once the contender's held marker exists. It writes the held marker again
// if the answer was so late that the contender's node may have been deleted since.
func (s *State) heldMarkerMade() {
	switch e := s.delay.entry; {
	case len(e.requests) == 0:
		s.deleteWithMarker(e)
	case !s.proven(e):
		s.requestMarker(requests.ReplaceHeldMarker)
	default:
		s.delay = nil
		s.hold(e)
	}
}

func (s *State) deletedCleanly(done bool) {
	e := s.delay.entry
	e.mayBeDeleted = s.delay.outcomeUnknown
	s.delay = nil
	if done {
		s.deleteAcked(e)
	} else {
		s.deleteNode(e) // one of both was missing: have the node deleted
	}
}

// markerFailed takes a Failed that answers an effect about the held marker.
func (s *State) markerFailed(why requests.Reason) {
	switch m := s.delay; {
	case s.closed != 0 && (why == requests.SessionLost || why == requests.Closed): // the node goes with the session
		s.entries.remove(m.entry.serial)
		s.removeFromList(&m.entry.contender)
		s.delay = nil
	case why == requests.OutcomeUnknown: // repeat it: the result is the same if it was done before
		m.outcomeUnknown = true
		s.requestMarker(m.kind)
	case m.kind == requests.ReadHeldMarker: // take it for another's
		s.startDelay()
	case m.kind == requests.DeleteWithHeldMarker:
		s.add(requests.ReportHeldMarker, 0).Reason = why
		s.deletedCleanly(false)
	default:
		e := m.entry
		s.delay = nil
		s.endEach(e, requests.Refuse, why)
		s.deleteNode(e)
	}
}

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

func (ev Failed) apply(s *State) {
	if e := s.entries.at(ev.Serial); e != nil {
		s.createFailed(e, ev)
	} else if s.awaitsMarker(ev.Serial) {
		s.markerFailed(ev.Reason)
	} else if ev.Serial == s.numbers.deletion {
		s.directoryDeleted(false)
	} else if ev.Serial == s.listing.serial {
		s.listing.serial, s.listing.again = 0, false
		s.refuseOutside(ev.Reason)
		s.assumeContended()
		s.readFailed(ev)
	} else if s.unwatch(ev.Serial) {
		s.readFailed(ev)
	}
}

// readFailed refuses the waiting requests: without the read nothing would wake them.
func (s *State) readFailed(ev Failed) {
	for _, e := range s.waitingInOrder() {
		s.refuseAll(e, ev.Reason)
	}
	// The holders are to be verified nevertheless.
	var ask []string
	for e := range own(s.holders) {
		if e.stage == held && s.watches[e.name] == nil && ev.Serial != s.watchAfterFailure {
			ask = append(ask, e.name)
		}
	}
	if len(ask) > 0 {
		s.requestWatch(ask, 0)
		s.watchAfterFailure = s.lastSerial
	}
}

func (s *State) createFailed(e *entry, ev Failed) {
	switch {
	case e.stage == leaving: // its node may still exist, also if the session is lost
		s.entries.remove(e.serial)
		s.lastDeleted = nil
		s.refuseRelease(e, ev.Reason)
		return
	case e.answered():
		return
	}
	if ev.Reason == requests.NodeDeleted { // perhaps by another client, which may have deleted other nodes, too: see ownNodeDeleted
		s.allDoubtedAt = s.clock
	}
	unwanted := e.stage == abandoned
	s.markAnswered(e)
	s.entries.remove(e.serial)
	s.removeFromList(&e.contender)
	origin := s.detach(e)
	switch {
	case origin != nil && ev.Reason == requests.NotHeld:
		e.stage = leaving
		s.refuseAll(e, requests.NodeDeleted)
		s.ownNodeDeleted(origin)
	case unwanted:
	case ev.Reason == requests.NodeDeleted:
		e.downgrade.of = origin
		s.requestCreate(e)
	default:
		e.stage = leaving // there is no node to delete
		s.refuseAll(e, ev.Reason)
	}
	s.leaveIfReleased(origin)
}

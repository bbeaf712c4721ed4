package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Changes of the session, and the end of the lock.

func (e Session) apply(s *State) {
	switch {
	case e.State == Lost || e.Epoch != s.epoch: // also the first session, before which there is nothing to lose
		s.loseSession()
		s.epoch, s.firstSerial = e.Epoch, s.lastSerial+1
	case e.State == Suspended && s.session == Connected:
		s.suspend()
	case e.State == Connected && s.session == Suspended:
		// A change may have been missed meanwhile: look at the contenders and at all watched nodes
		// again.
		s.session = Connected
		s.doubtedAt = s.clock
		clear(s.watches)
		s.contention.set = false
		if len(s.contenders) > 0 {
			s.requestList()
		}
		for c := range own(s.contenders) {
			if c.stage == held {
				s.notifyRevoked(c)
			}
		}
	}
	s.session = e.State
	if s.session != Lost {
		again := slices.DeleteFunc(s.unsent, hasLeft)
		s.unsent, s.unsentLeft = nil, 0
		for _, c := range again {
			s.requestCreate(c)
		}
	}
	s.grantEligible()
}

// suspend ends the proofs of the watches: each has shown until now that its node exists, and reports
// nothing without a connection.
func (s *State) suspend() {
	for _, c := range s.contenders {
		if w := s.watches[c.name]; w != nil && w.active {
			w.active, c.provenAt = false, s.clock
		}
	}
}

// loseSession ends what the session carried. It keeps the waiting contenders for the next session,
// in their order.
func (s *State) loseSession() {
	s.session = Lost
	for _, c := range s.entriesInOrder() {
		switch c.stage {
		case held:
			s.lose(c, requests.SessionLost)
		case leaving: // its node may outlive the loss, until ZooKeeper notices
			s.refuseRelease(c, requests.SessionLost)
		}
	}
	var first []*entry
	if c := s.delay.entry; c != nil && c.stage == makingMarker && len(c.requests) > 0 {
		first = append(first, c)
	}
	s.delay = delay{}
	again := slices.Concat(first, s.waitingInOrder(), slices.DeleteFunc(s.unanswered, func(c *entry) bool {
		return c.stage != creating
	}), slices.DeleteFunc(s.unsent, hasLeft))
	s.unsentLeft = 0
	s.forget()
	s.directoryView = directoryView{completeThrough: nothingKnown}
	s.listing = listing{}
	clear(s.entries)
	clear(s.watches)
	clear(s.waiting)
	s.waitingTries, s.unanswered, s.unsent, s.lastDeleted = 0, nil, nil, nil
	s.contention = contentionWatch{wanted: s.contention.wanted}
	for _, c := range again {
		s.requestCreate(c)
	}
}

// entriesInOrder returns the entries by serial, so that the order of effects does not depend on a
// map.
func (s *State) entriesInOrder() []*entry {
	all := make([]*entry, 0, len(s.entries))
	for _, c := range s.entries {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(int64(a.serial) - int64(b.serial)) })
	return all
}

// apply has the nodes of all contenders deleted. The State takes in what the bridge answers until
// Ending is false.
func (e Close) apply(s *State) {
	s.closed = e.Reason
	s.listArrived(false)
	for _, c := range slices.Concat(s.unsent, s.entriesInOrder()) {
		switch c.stage {
		case held:
			s.lose(c, e.Reason) // the held marker stays: the owner may not have ended its work
			s.removeFromList(&c.contender)
			s.deleteNode(c)
		case unsent, creating, queued, makingMarker:
			s.refuseAll(c, e.Reason)
		case leaving: // no owner will hear of the end of its DeleteNode
			s.refuseRelease(c, e.Reason)
		}
	}
}

package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Changes of the session, and the end of the lock.

func (ev Session) apply(s *State) {
	switch {
	case ev.State == Lost || ev.Epoch != s.epoch: // also the first session, before which there is nothing to lose
		s.loseSession()
		s.epoch, s.firstSerial = ev.Epoch, s.lastSerial+1
	case ev.State == Suspended && s.session == Connected:
		s.suspend()
	case ev.State == Connected && s.session == Suspended:
		s.resume()
	}
	s.session = ev.State
	if s.session != Lost {
		s.createUnsent()
	}
	s.grantEligible()
}

// resume has the contenders and all watched nodes looked at again: a change may have been missed
// without a connection.
func (s *State) resume() {
	s.session = Connected
	s.doubtedAt = s.clock
	clear(s.watches)
	s.contention.set = false
	if len(s.contenders) > 0 {
		s.requestList()
	}
	for e := range own(s.contenders) {
		if e.stage == held {
			s.notifyRevoked(e)
		}
	}
}

// createUnsent has the nodes created of all entries that wait for a session.
func (s *State) createUnsent() {
	again := slices.DeleteFunc(s.unsent, hasLeft)
	s.unsent, s.unsentLeft = nil, 0
	for _, e := range again {
		s.requestCreate(e)
	}
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

// loseSession ends the grants of the session, and keeps the waiting contenders for the next one.
func (s *State) loseSession() {
	s.session = Lost
	for _, e := range s.entriesInOrder() {
		switch e.stage {
		case held:
			s.lose(e, requests.SessionLost)
		case leaving: // its node may outlive the loss, until ZooKeeper notices
			s.refuseRelease(e, requests.SessionLost)
		}
	}
	s.startAnew()
}

// startAnew forgets the directory of the lost session, and has the waiting contenders queue again in
// their order.
func (s *State) startAnew() {
	var first []*entry
	if e := s.delay.entry; e != nil && e.stage == makingMarker && len(e.requests) > 0 {
		first = append(first, e)
	}
	s.delay = delay{}
	again := slices.Concat(first, s.waitingInOrder(), slices.DeleteFunc(s.unanswered, func(e *entry) bool {
		return e.stage != creating
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
	for _, e := range again {
		s.requestCreate(e)
	}
}

// entriesInOrder returns the entries by serial, so that the order of effects does not depend on a
// map.
func (s *State) entriesInOrder() []*entry {
	all := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(int64(a.serial) - int64(b.serial)) })
	return all
}

// apply has the nodes of all contenders deleted. The State takes in what the bridge answers until
// Ending is false.
func (ev Close) apply(s *State) {
	s.closed = ev.Reason
	s.listArrived(false)
	for _, e := range slices.Concat(s.unsent, s.entriesInOrder()) {
		switch e.stage {
		case held:
			s.lose(e, ev.Reason) // the held marker stays: the owner may not have ended its work
			s.removeFromList(&e.contender)
			s.deleteNode(e)
		case unsent, creating, queued, makingMarker:
			s.refuseAll(e, ev.Reason)
		case leaving: // no owner will hear of the end of its DeleteNode
			s.refuseRelease(e, ev.Reason)
		}
	}
}

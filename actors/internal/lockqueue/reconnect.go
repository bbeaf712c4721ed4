package lockqueue

import "slices"

// The end of a connection and the next one, and the next session.

// suspend ends the proofs of the watches: each has shown until now that its node exists, and
// reports nothing without a connection.
func (s *State) suspend() {
	for _, c := range s.contenders {
		if w := s.watches[c.name]; w != nil && w.active {
			w.active, c.provenAt = false, s.clock
		}
	}
}

// resume has the contenders and all watched nodes looked at again: a change may have been missed
// without a connection.
func (s *State) resume() {
	s.session = Connected
	s.allDoubtedAt = s.clock
	clear(s.watches)
	s.contention.set = false
	if len(s.contenders) > 0 {
		s.requestList()
	}
	for e := range own(s.holders) {
		if e.stage == held {
			s.watchRevocable(e)
		}
	}
}

// startAnew forgets the directory of the lost session, and has the waiting contenders queue again
// in their order.
func (s *State) startAnew() {
	var first []*entry
	if d := s.delay; d != nil && d.entry.stage == makingMarker && len(d.entry.requests) > 0 {
		first = append(first, d.entry)
	}
	s.delay = nil
	again := slices.Concat(first, s.waitingInOrder())
	for e := range s.unanswered.All() {
		if e.link.Leave(); e.stage == creating {
			again = append(again, e)
		}
	}
	again = slices.AppendSeq(again, s.unsent.All())
	s.forget()
	s.directoryView = newView()
	s.listing = listing{}
	s.entries = entryTable{}
	clear(s.watches)
	clear(s.asked)
	s.creating, s.listsDue = 0, 0
	s.waitingTries, s.lastDeleted = 0, nil
	s.contention = contentionWatch{wanted: s.contention.wanted}
	for _, e := range again {
		s.requestCreate(e)
	}
}

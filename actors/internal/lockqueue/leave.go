package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The end of a request, of its entry and of its node.

func (ev Cancel) apply(s *State) {
	if e := s.requests.At(ev.ID); e != nil {
		if ev.Unclean && e.stage == held && len(e.requests) == 1 {
			e.ending = unclean
		}
		s.withdraw(e, ev.ID, ev.Reason)
	}
}

func (ev Release) apply(s *State) {
	e := s.requests.At(ev.ID)
	if e == nil || e.stage != held {
		s.refuse(ev.ID, requests.NotHeld)
		return
	}
	s.drop(e, ev.ID)
	if n := len(e.requests); n > 0 {
		s.add(requests.ConfirmRelease, ev.ID).StillHeld = n
		return
	}
	e.noteRelease(ev.ID)
	s.leave(e)
}

// withdraw ends a request, in whatever stage its entry is.
func (s *State) withdraw(e *entry, id requests.ID, why requests.Reason) {
	s.drop(e, id)
	s.refuse(id, why)
	if len(e.requests) == 0 {
		s.leave(e)
	}
}

// refuseAll refuses all requests of the entry, which leaves.
func (s *State) refuseAll(e *entry, why requests.Reason) {
	s.endEach(e, requests.Refuse, why)
	s.leave(e)
}

// lose ends an entry that holds: its requests lose the lock, and its downgrades are refused.
func (s *State) lose(e *entry, why requests.Reason) {
	s.refuseDowngrades(e, why)
	s.refuseRelease(e, why) // if its owner had released it, and it stayed for its downgrades only
	s.endEach(e, requests.Lose, why)
	e.stage = leaving
}

// refuseDowngrades refuses the downgrades that are being made beside an entry.
func (s *State) refuseDowngrades(e *entry, why requests.Reason) {
	if e.downgrade.pending == 0 {
		return
	}
	for d := range s.unanswered.All() {
		if d.downgrade.of == e {
			s.detach(d)
			s.refuseAll(d, why)
		}
	}
}

// leave ends an entry without requests, in whatever stage it is.
func (s *State) leave(e *entry) {
	switch {
	case e.downgrade.pending > 0:
		return // until their CreateNodes are answered
	case e.stage == makingMarker && !s.abandonDelay():
		return // the transaction for the held marker goes on, and then the entry leaves
	}
	s.stopWaiting(e)
	switch e.stage {
	case unsent:
		e.stage = leaving
		e.link.Leave()
	case creating:
		s.removeFromList(&e.contender)
		s.creating--
		e.stage = abandoned // its node is deleted once it is known
	case created, queued, makingMarker:
		s.deleteNode(e)
	case held:
		s.deleteWithMarker(e)
	}
}

// leaveIfReleased ends an entry that was released before, and stayed for its downgrades only.
func (s *State) leaveIfReleased(origin *entry) {
	if origin != nil && len(origin.requests) == 0 && origin.stage == held {
		s.leave(origin)
	}
}

// deleteNode takes the entry off the list, and has its node deleted: for deleteWithMarker together
// with the held marker.
func (s *State) deleteNode(e *entry) {
	s.removeFromList(&e.contender)
	e.stage = leaving
	if s.contention.requested { // the deletion ends the watch on the directory, so it comes after that
		s.contention.deleteAfter = append(s.contention.deleteAfter, e)
		return
	}
	if s.delay.isOf(e) {
		s.requestMarker(requests.DeleteWithHeldMarker)
		return
	}
	s.lastDeleted = nil
	if e.inDirectory {
		s.lastDeleted = e
	}
	s.ask(requests.DeleteNode, e.serial).Node = e.name
}

// deleteWithMarker has the entry's node deleted, together with the held marker if the rule has a delay and the
// end is not unclean.
func (s *State) deleteWithMarker(e *entry) {
	if s.rule.Delay && e.ending != unclean {
		s.delay = &delay{entry: e}
	}
	s.deleteNode(e)
}

func (ev Deleted) apply(s *State) {
	e := s.entries.at(ev.Serial)
	if e == nil || e.stage != leaving {
		return
	}
	if ev.Missing && !e.mayBeDeleted { // the client that deleted it may have deleted other nodes of this process, too
		s.refuseRelease(e, requests.NodeDeleted)
		s.allDoubtedAt = s.clock
		if s.listsOwn() {
			s.requestList()
		}
	}
	s.deleteAcked(e)
	if len(s.entries.list) == 0 {
		s.listOutside() // perhaps it was the last contender
	}
}

// deleteAcked forgets an entry whose node is gone.
func (s *State) deleteAcked(e *entry) {
	s.entries.remove(e.serial)
	s.contention.set = s.contention.set && s.contention.requested // see contentionWatch
	if e == s.lastDeleted {
		s.lastDeleted = nil
	}
	if e.ending == releasing {
		e.ending = clean
		s.add(requests.ConfirmRelease, e.releaser())
	}
}

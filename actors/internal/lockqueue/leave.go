package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The end of an entry and of its node.

// leave ends an entry without requests, in whatever stage it is.
func (s *State) leave(e *entry) {
	switch {
	case e.downgrade.beside > 0:
		return // until their CreateNodes are answered
	case e.stage == makingMarker && !s.abandonDelay():
		return // the transaction for the held marker goes on, and then the entry leaves
	}
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	switch e.stage {
	case unsent:
		e.stage = leaving
		s.compactUnsent()
	case creating:
		s.creating--
		e.stage = abandoned // its node is deleted once it is known
	case created, queued, makingMarker:
		s.deleteNode(e)
	case held:
		if e.ending == unclean {
			s.deleteNode(e)
		} else {
			s.deleteCleanly(e)
		}
	}
}

// compactUnsent takes the entries that have left out of unsent once they are many. To take out each
// of them at once would cost the length of the list.
func (s *State) compactUnsent() {
	s.unsentLeft++
	if int(s.unsentLeft)*2 > len(s.unsent) {
		s.unsent = slices.DeleteFunc(s.unsent, hasLeft)
		s.unsentLeft = 0
	}
}

func hasLeft(e *entry) bool { return e.stage == leaving }

func (s *State) deleteNode(e *entry) {
	e.stage = leaving
	if s.contention.requested { // the deletion ends the watch on the directory, so it comes after that
		s.contention.deleteAfter = append(s.contention.deleteAfter, e)
		return
	}
	s.lastDeleted = nil
	if e.inDirectory {
		s.lastDeleted = e
	}
	s.ask(requests.DeleteNode, e.serial).Node = e.name
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
	if s.entries.len() == 0 {
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

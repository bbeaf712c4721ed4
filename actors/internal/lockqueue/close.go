package lockqueue

import (
	"iter"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The end of the lock, and what its actor asks for the end.

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

// Idle reports whether no request is open and no answer is awaited.
func (s *State) Idle() bool {
	return s.entries.len() == 0 && s.requests.Len() == 0 && len(s.unsent) == int(s.unsentLeft) && s.listing.serial == 0 && s.numbers.deletion == 0
}

// Ending reports whether a node of this process may still exist after Close.
func (s *State) Ending() bool { return s.entries.len() > 0 }

// Node returns the name of the node of the entry with a serial, and whether the name is known as a
// whole: before its Created it is the prefix. Without such an entry Node returns "".
func (s *State) Node(serial uint64) (name string, made bool) {
	e := s.entries.at(serial)
	switch {
	case e == nil:
		return "", false
	case e.name == "":
		return s.incarnation.prefix(e.serial, s.rule.Markers[e.kind]), false
	}
	return e.name, true
}

// Holds reports whether a request holds the lock.
func (s *State) Holds(id requests.ID) bool {
	e := s.requests.At(id)
	return e != nil && e.stage == held
}

// NodeOf returns the name of the node of an open request, as Node does.
func (s *State) NodeOf(id requests.ID) (name string) {
	if e := s.requests.At(id); e != nil {
		name, _ = s.Node(e.serial)
	}
	return name
}

// Nodes returns serial and name of the nodes of this process that are known to exist, in the order
// of serials: a failed actor deletes them.
func (s *State) Nodes() iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for _, e := range s.entriesInOrder() {
			if e.name != "" && !yield(e.serial, e.name) {
				return
			}
		}
	}
}

// ReleaseMemory frees the memory that an Idle State keeps for its next event. Most of many locks
// are idle most of the time.
func (s *State) ReleaseMemory() {
	if !s.Idle() {
		return
	}
	s.entries, s.requests, s.owners = entryTable{}, nil, nil
	s.unanswered, s.unsent, s.unsentLeft = nil, nil, 0
	s.waiting, s.holders = nil, nil
	if len(s.contenders) == 0 {
		s.contenders, s.byKind = nil, nil
	}
	if len(s.watches) == 0 {
		s.watches, s.asked = nil, nil
	}
}

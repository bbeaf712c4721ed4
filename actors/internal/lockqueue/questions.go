package lockqueue

import (
	"iter"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// What the lock's actor asks.

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

// NodeOf returns the name of the node of an open request, as Node does.
func (s *State) NodeOf(id requests.ID) (name string) {
	if e := s.requests.At(id); e != nil {
		name, _ = s.Node(e.serial)
	}
	return name
}

// SerialOf returns the serial of the entry of an open request; 0 before its first CreateNode.
func (s *State) SerialOf(id requests.ID) uint64 {
	if e := s.requests.At(id); e != nil {
		return e.serial
	}
	return 0
}

// Leaves reports whether an entry without requests has a node that may exist, or a CreateNode that is not
// answered.
func (s *State) Leaves(serial uint64) bool {
	e := s.entries.at(serial)
	return e != nil && len(e.requests) == 0
}

// NoteGone begins to note, for Gone, which entries are removed in the present session, or ends that.
func (s *State) NoteGone(note bool) {
	if s.entries.gone = nil; note {
		s.entries.gone = new([]uint64)
	}
}

// Gone returns the serials of the entries that were removed since NoteGone or the last Gone, in order.
func (s *State) Gone() (serials []uint64) {
	if noted := s.entries.gone; noted != nil {
		serials, *noted = *noted, nil
	}
	return serials
}

// Nodes returns serial and name of the nodes of this process that are known to exist, in the order
// of serials: a failed actor deletes them.
func (s *State) Nodes() iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for _, e := range s.entries.list {
			if e.name != "" && !yield(e.serial, e.name) {
				return
			}
		}
	}
}

// Holds reports whether a request holds the lock.
func (s *State) Holds(id requests.ID) bool {
	e := s.requests.At(id)
	return e != nil && e.stage == held
}

// Has reports whether an owner waits for the lock or holds it. An owner without a name does not.
func (s *State) Has(name string) bool {
	for kind := range s.rule.BlockedBy {
		if s.owners[owner{name, queue.Kind(kind)}] != nil {
			return true
		}
	}
	return false
}

// IsOwn reports whether a contender of this State has a node of the name, or had it.
func (s *State) IsOwn(name string) bool {
	_, own := s.incarnation.serial(name)
	return own
}

// KeepDirectory has the directory never deleted: it is not the lock's own.
func (s *State) KeepDirectory() { s.keepsDirectory = true }

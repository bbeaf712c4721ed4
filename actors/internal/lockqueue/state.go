package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// State is what one process knows of one lock: its own contenders, and those of other processes
// as far as they matter. It is made by [New] and used by one goroutine at a time.
type State struct {
	rule        queue.Rule
	incarnation Incarnation

	clock      uint64 // number of events
	lastSerial uint64 // last serial of an effect that the bridge answers
	// epoch is the number of the session, and firstSerial is the first serial that belongs to it.
	epoch, firstSerial uint64
	session            SessionState
	closed             requests.Reason // not 0 after Close

	directoryView
	ownEntries
	proofs
	listing    listing
	delay      delay
	contention contentionWatch

	// reported are the names that were reported as no contenders, at most maxReported.
	reported map[string]bool

	out          []Effect
	blockers     []int        // scratch
	firstWaiting []*contender // scratch
}

// New returns the State of a lock without requests. in marks the names of its nodes: no two States
// that ever share a directory may have the same.
func New(rule queue.Rule, in Incarnation) *State {
	return &State{rule: rule, incarnation: in, directoryView: directoryView{completeThrough: nothingKnown}}
}

// ReleaseMemory frees the memory that an Idle State keeps for its next event. Most of many locks
// are idle most of the time.
func (s *State) ReleaseMemory() {
	if !s.Idle() {
		return
	}
	s.entries, s.requests, s.owners, s.out, s.blockers = nil, nil, nil, nil, nil
	s.unanswered, s.unsent, s.unsentLeft = nil, nil, 0
	s.waiting, s.firstWaiting = nil, nil
	if len(s.contenders) == 0 {
		s.contenders = nil
	}
	if len(s.watches) == 0 {
		s.watches = nil
	}
}

// put writes to a map, and makes the map first if there is none.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Step applies an event to the State and returns what is to be done because of it, in order. The
// slice is valid until the next Step. (Step is generic so that an event need not be allocated.)
func Step[E Event](s *State, ev E) []Effect {
	s.out = s.out[:0]
	s.clock++
	ev.apply(s)
	s.watchContention()
	invariants.Check(s)
	return s.out
}

// Idle reports whether no request is open and no answer is awaited.
func (s *State) Idle() bool {
	return len(s.entries) == 0 && s.requests.Len() == 0 && len(s.unsent) == s.unsentLeft && s.listing.serial == 0
}

// Ending reports whether a node of this process may still exist after Close.
func (s *State) Ending() bool { return len(s.entries) > 0 }

// Node returns the name of the node of the entry with a serial, and whether the name is known as a
// whole: before its Created it is the prefix. Without such an entry Node returns "".
func (s *State) Node(serial uint64) (name string, made bool) {
	e := s.entries[serial]
	switch {
	case e == nil:
		return "", false
	case e.name == "":
		return s.incarnation.Prefix(e.serial, s.rule.Markers[e.kind]), false
	}
	return e.name, true
}

// Nodes returns serial and name of the nodes of this process that are known to exist: a failed
// actor deletes them.
func (s *State) Nodes() map[uint64]string {
	nodes := map[uint64]string{}
	for serial, e := range s.entries {
		if e.name != "" {
			nodes[serial] = e.name
		}
	}
	return nodes
}

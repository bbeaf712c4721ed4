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
	// epoch is that of the session, and firstSerial is the first serial that belongs to it.
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

// NewState is the state of a lock that nobody here has asked for yet. in marks its
// nodes' names; no two States that ever share a directory may have the same.
func New(rule queue.Rule, in Incarnation) *State {
	return &State{rule: rule, incarnation: in, directoryView: directoryView{completeThrough: nothingKnown}}
}

// Rest gives back the memory that a State has for the next event, if it is Idle. It is
// for locks of which many rest most of the time.
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

// put writes to a map that is made when it is needed.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Step takes an event into the state and gives what is to be done about it, in order.
// The slice is good until the next Step. (It is generic so that an event need not be
// allocated.)
func Step[E Event](s *State, e E) []Effect {
	s.out = s.out[:0]
	s.clock++
	e.apply(s)
	s.watchContention()
	invariants.Check(s)
	return s.out
}

// Idle tells that nobody here wants anything of the lock and no answer is awaited.
func (s *State) Idle() bool {
	return len(s.entries) == 0 && s.requests.Len() == 0 && len(s.unsent) == s.unsentLeft && s.listing.serial == 0
}

// Ending reports whether a node of ours may still be there after Close.
func (s *State) Ending() bool { return len(s.entries) > 0 }

// Node returns the name of the node of the contender with the serial number, or what it
// begins with if its Create is not answered, and whether it is; "" if the contender has left.
func (s *State) Node(serial uint64) (name string, made bool) {
	c := s.entries[serial]
	switch {
	case c == nil:
		return "", false
	case c.name == "":
		return s.incarnation.Prefix(c.serial, s.rule.Markers[c.kind]), false
	}
	return c.name, true
}

// Nodes gives serial number and name of the nodes of ours that are known to be there.
// It is for clearing up after a failure.
func (s *State) Nodes() map[uint64]string {
	nodes := map[uint64]string{}
	for serial, c := range s.entries {
		if c.name != "" {
			nodes[serial] = c.name
		}
	}
	return nodes
}

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/invariants"

// Event is something that happened to a lock: one of the types in event.go.
type Event interface {
	apply(*State)
}

// Step applies an event to the State and returns what is to be done because of it, in order. The
// slice is valid until Performed or the next Step. (Step is generic so that an event need not be
// allocated.)
func Step[E Event](s *State, ev E) []Effect {
	s.needScratch()
	s.out = s.out[:0]
	s.clock++
	ev.apply(s)
	s.grantEligible()
	s.admit()           // creates the nodes of entries that have waited for a session or for a number
	s.watchContention() // for Acquire.NotifyContended
	invariants.Check(s)
	return s.out
}

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// What is asked about the held marker: see delay.go.

// createHeldMarker has the contender make its held marker before it holds.
func (s *State) createHeldMarker(e *entry) {
	e.stage = makingMarker
	s.delay = &delay{entry: e}
	s.requestMarker(requests.CreateHeldMarker)
}

func (s *State) requestMarker(do requests.EffectKind) {
	s.lastSerial++
	s.delay.kind, s.delay.serial, s.delay.askedAt = do, s.lastSerial, s.clock
	s.ask(do, s.lastSerial).Node = s.delay.entry.name
}

// abandonDelay ends the wait for the end of the delay after Close, when there is no DelayElapsed,
// and reports whether there was such a wait: then the contender leaves at once.
func (s *State) abandonDelay() bool {
	if s.closed == 0 || s.delay == nil || s.delay.kind != requests.StartDelay {
		return false
	}
	s.delay = nil
	return true
}

// awaitsMarker reports whether an answer is about the held marker.
func (s *State) awaitsMarker(serial uint64) bool {
	return s.delay != nil && s.delay.serial == serial
}

package lockqueue

import "slices"

// The end of the lock.

// apply has the nodes of all contenders deleted. The State takes in what the bridge answers until
// Ending is false.
func (ev Close) apply(s *State) {
	s.closed = ev.Reason
	s.listArrived(false)
	for _, e := range slices.Concat(slices.Collect(s.unsent.All()), s.entries.list) {
		switch e.stage {
		case held:
			s.lose(e, ev.Reason) // the held marker stays: the owner may not have ended its work
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
	return len(s.entries.list) == 0 && s.requests.Len() == 0 && s.unsent.First() == nil && s.listing.serial == 0 && s.numbers.deletion == 0
}

// Ending reports whether a node of this process may still exist after Close.
func (s *State) Ending() bool { return len(s.entries.list) > 0 }

// ReleaseMemory frees the memory that an Idle State keeps for its next event. Most of many locks
// are idle most of the time.
func (s *State) ReleaseMemory() {
	if !s.Idle() {
		return
	}
	s.entries, s.requests, s.owners = entryTable{}, nil, nil
	s.waiting, s.holders = nil, nil
	if len(s.contenders) == 0 {
		s.contenders, s.byKind = nil, nil
	}
	if len(s.watches) == 0 {
		s.watches, s.asked = nil, nil
	}
}

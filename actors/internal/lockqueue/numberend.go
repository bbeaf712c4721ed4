package lockqueue

import "slices"

// At the end of the 32-bit numbers several nodes have the same number. Near that end contenders rank by czxid.

// switchToCzxids ranks the contenders by czxid from now on, since their numbers have come near their
// end. The czxids of other processes' contenders are not known: these are forgotten.
func (s *State) switchToCzxids() {
	if s.byCzxid {
		return
	}
	entries := s.forget()
	s.byCzxid, s.lastDeleted = true, nil
	for _, e := range entries {
		if e.answered() {
			s.addAnew(e)
		}
	}
}

// unlisted returns the queued entries that no list has shown yet, near the end of the numbers.
func (s *State) unlisted() []*entry {
	if !s.byCzxid {
		return nil
	}
	return slices.DeleteFunc(s.waitingInOrder(), func(e *entry) bool { return e.listed })
}

// behindUnlisted reports whether a contender of this process is ahead of e that no list has shown.
func (s *State) behindUnlisted(e *entry) bool {
	return slices.ContainsFunc(s.unlisted(), func(o *entry) bool { return o.rank.compare(e.rank) < 0 })
}

// listReusedNames has the directory listed at a Tick while contenders wait: another node may have the name of
// a deleted one by now, and only the czxids of a list tell them apart.
func (s *State) listReusedNames() {
	if s.byCzxid && slices.ContainsFunc(s.waiting, func(line []*contender) bool { return len(line) > 0 }) {
		s.requestList()
	}
}

// findByName is find where the list is not in the order of numbers.
func (s *State) findByName(name string) *contender {
	serial, _ := s.incarnation.serial(name)
	if e := s.entries[serial]; e != nil && e.stage == queued && e.name == name {
		return &e.contender
	}
	if i := slices.IndexFunc(s.contenders, func(c *contender) bool { return c.name == name }); i >= 0 {
		return s.contenders[i]
	}
	return nil
}

package queue

import "slices"

// The life of our own nodes.

// send has the contender's node created, or keeps the contender until that is
// possible.
func (s *State) send(c *contender) {
	if s.session == Lost {
		c.stage = unsent
		s.unsent = append(s.unsent, c)
		return
	}
	s.serials++
	c.stage, c.serial, c.sentAt = creating, s.serials, s.clock
	c.answered, c.bornAt, c.unsure, c.aged = false, 0, false, false
	s.ours[c.serial] = c
	s.outstanding = append(s.outstanding, c)
	s.effect(Effect{Do: DoCreate, Serial: c.serial, Node: s.in.Prefix(c.serial, s.rule.Markers[c.kind]), Data: c.data})
}

// leave ends a contender that nobody wants any more, however far it came.
func (s *State) leave(c *contender) {
	s.stopWaiting(c)
	s.delist(c)
	switch c.stage {
	case unsent:
		c.stage = leaving
		s.tidyUnsent()
	case creating:
		c.stage = abandoned // its node will be deleted once it is known
	case queued, held:
		s.delete(c)
	}
}

// tidyUnsent takes those who left out of unsent once they are many: each at its time
// would cost the length of the list.
func (s *State) tidyUnsent() {
	s.left++
	if s.left*2 > len(s.unsent) {
		s.unsent = slices.DeleteFunc(s.unsent, hasLeft)
		s.left = 0
	}
}

func hasLeft(c *contender) bool { return c.stage == leaving }

func (s *State) delete(c *contender) {
	c.stage = leaving
	s.effect(Effect{Do: DoDelete, Serial: c.serial, Node: c.name})
}

func (e Created) apply(s *State) {
	c := s.ours[e.Serial]
	if c == nil || e.Epoch != s.epoch || c.answered {
		return
	}
	seq, _, ok := Parse(e.Node)
	current := s.enter(e.Directory)
	s.answer(c)
	if !current {
		// The node went with a directory that is no more.
		s.forgotten(c)
		s.settle()
		return
	}
	c.name, c.seq, c.czxid, c.step, c.bornAt = e.Node, seq, e.Czxid, e.Step, s.clock
	s.locate(c, e)
	switch {
	case c.stage == abandoned:
		s.delete(c)
	case !ok || exhausted(seq):
		s.refuseAll(c, Exhausted)
		if c.stage == abandoned {
			s.delete(c)
		}
	default:
		s.enlist(c)
		s.startWaiting(c)
		s.advance()
	}
	if e.Others < 0 && e.Children != nil {
		s.merge(e.Children, c.sentAt)
	}
	s.settle()
}

// enter takes note of the directory that an answer is about; false if it is a former
// one. Nothing that was known of a former directory holds for the next.
func (s *State) enter(directory int64) bool {
	if directory <= s.directory {
		return directory == s.directory
	}
	s.directory = directory
	s.horizon, s.foreign = unknown, 0
	old := s.list
	s.list = nil
	for _, c := range old {
		c.listed = false
		if c.ours && c.answered {
			s.vanish(c)
		}
	}
	return true
}

// forgotten is for a node that was created in a directory that is no more.
func (s *State) forgotten(c *contender) {
	delete(s.ours, c.serial)
	s.delist(c)
	if c.stage == creating {
		s.send(c)
	}
}

// answer notes that the contender's Create is answered.
func (s *State) answer(c *contender) {
	c.answered = true
	for len(s.outstanding) > 0 && s.outstanding[0].answered {
		s.outstanding[0] = nil
		s.outstanding = s.outstanding[1:]
	}
}

// locate learns of the queue from where a new node came to stand in it.
func (s *State) locate(c *contender, e Created) {
	if e.Others == 0 {
		// Only the nodes of its own transaction were there, which have
		// consecutive numbers: whoever came earlier is gone.
		floor := c.seq - int64(c.step) - 1
		s.horizon = max(s.horizon, floor)
		for i := 0; s.foreign > 0 && i < len(s.list) && s.list[i].seq <= floor; i++ {
			if o := s.list[i]; !o.ours {
				s.delist(o)
				i--
			}
		}
	}
	if c.seq == s.horizon+1 {
		s.horizon++
	}
}

// advance moves the horizon over numbers that have become consecutive.
func (s *State) advance() {
	for i := place(s.list, s.horizon+1); i < len(s.list) && s.list[i].seq == s.horizon+1; i++ {
		s.horizon++
	}
}

func (e Deleted) apply(s *State) {
	if c := s.ours[e.Serial]; c != nil && c.stage == leaving {
		s.gone(c)
	}
}

// gone forgets a contender whose node is no more.
func (s *State) gone(c *contender) {
	delete(s.ours, c.serial)
	if c.released {
		c.released = false
		s.effect(Effect{Do: DoReleased, ID: c.releaser})
	}
}

// vanish is for a node of ours that somebody else deleted.
func (s *State) vanish(c *contender) {
	if c.stage == creating { // it was seen in a list before its Created
		s.outstanding = slices.DeleteFunc(s.outstanding, func(o *contender) bool { return o == c })
	}
	delete(s.ours, c.serial)
	s.stopWaiting(c)
	s.delist(c)
	if c.stage == held {
		s.lose(c, NodeDeleted)
		return
	}
	s.send(c) // wait again, at the end of the queue
}

// lose ends a grant that nobody released.
func (s *State) lose(c *contender, why Why) {
	c.stage, c.why = lost, why
	for _, r := range c.requests {
		s.effect(Effect{Do: DoLose, ID: r.id, Why: why})
		if c.owner == "" {
			delete(s.requests, r.id)
		}
	}
}

package queue

// settle finds out whether the first of ours that waits may hold, and sees to it
// that a later change will be noticed if it may not. Those behind it wait for it or
// for what it waits for.
func (s *State) settle() {
	for len(s.waiting) > 0 {
		c := s.waiting[0]
		if c.seq > s.horizon {
			s.lookAround(c)
			return
		}
		// One more than needed, to know whether there are more.
		s.blockersAt = s.rule.blockers(s.blockersAt[:0], place(s.list, c.seq), c.kind,
			func(i int) Kind { return s.list[i].kind }, s.rule.Permits+1)
		switch n := len(s.blockersAt); {
		case n >= s.rule.Permits && s.block(c, s.blockersAt):
			return
		case n >= s.rule.Permits: // requests were refused: look again
		case !s.sure(c):
			return
		default:
			s.grant(c)
		}
	}
}

func (s *State) grant(c *contender) {
	s.stopWaiting(c)
	c.stage, c.unsure, c.aged = held, false, false
	for i := range c.requests {
		c.requests[i].try = false
		s.grantRequest(c, c.requests[i].id)
	}
}

// lookAround closes the gap between the horizon and a contender of ours. Creates of
// ours that were sent before it came may fill it; else somebody else's do.
func (s *State) lookAround(c *contender) {
	if s.listing == 0 && (len(s.outstanding) == 0 || s.outstanding[0].sentAt >= c.bornAt) {
		s.askList()
	}
}

func (s *State) askList() {
	if s.listing != 0 {
		s.listAgain = true
		return
	}
	s.serials++
	s.listing, s.listingAt = s.serials, s.clock
	s.effect(Effect{Do: DoList, Serial: s.listing})
}

// block is for a contender that may not hold because of the contenders at the given
// places. It sees to it that their departure is noticed, and reports true; or, if
// requests that would not wait had to be refused, false.
func (s *State) block(c *contender, blockers []int) (blocked bool) {
	more := len(blockers) > s.rule.Permits
	blockers = blockers[:min(len(blockers), s.rule.Permits)]
	var ask []string
	verified, others := true, false
	for _, i := range blockers {
		b := s.list[i]
		if b.ours {
			continue // its leaving brings us here again
		}
		others = true
		w := s.watches[b.name]
		if w == nil {
			ask = append(ask, b.name)
		}
		verified = verified && (b.seenAt >= c.bornAt || w != nil && w.active)
	}
	if verified && s.tries > 0 {
		s.refuseTries()
		return false
	}
	if !others || s.listing != 0 {
		return true
	}
	if len(ask) > 0 && more && c.unsure {
		// The one it waited for is gone, but several were ahead: see at once how
		// many have gone with it.
		s.askList()
		return true
	}
	// Who waits for somebody else must notice when its own node goes.
	c.unsure = true
	if s.watches[c.name] == nil {
		ask = append(ask, c.name)
	}
	if len(ask) > 0 {
		s.askWatch(ask)
	}
	return true
}

func (s *State) askWatch(nodes []string) {
	s.serials++
	for _, name := range nodes {
		s.watches[name] = &watch{serial: s.serials}
	}
	s.effect(Effect{Do: DoWatch, Serial: s.serials, Nodes: nodes})
}

// sure tells whether c's own node is known to be there as of the last event.
func (s *State) sure(c *contender) bool {
	if !c.unsure {
		return true
	}
	w := s.watches[c.name]
	if w == nil {
		s.askWatch([]string{c.name})
	}
	return w != nil && w.active
}

// refuseTries refuses the requests that would rather not wait: the first waiting
// contender is blocked, so the others are.
func (s *State) refuseTries() {
	for i := 0; i < len(s.waiting); {
		c := s.waiting[i]
		for j := len(c.requests) - 1; j >= 0; j-- {
			if r := c.requests[j]; r.try {
				s.drop(c, r.id)
				s.refuse(r.id, NotAcquired)
			}
		}
		if len(c.requests) > 0 {
			i++
			continue
		}
		s.leave(c) // takes it out of waiting
	}
}

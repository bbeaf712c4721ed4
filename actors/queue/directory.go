package queue

import "slices"

// What is seen of the directory: by lists, watches, and as time passes.

func (e Listed) apply(s *State) {
	if e.Epoch != s.epoch || e.Serial != s.listing {
		return
	}
	s.listing = 0
	if e.Directory == 0 || s.enter(e.Directory) {
		s.merge(e.Children, s.listingAt)
	}
	if s.listAgain {
		s.listAgain = false
		s.askList()
	}
	s.settle()
}

// merge makes a snapshot of the directory what is known of it. The snapshot was
// taken after the event at the clock since. It may be older than another that came
// before: of numbers beyond its highest it says nothing, unless we knew of the node
// before the snapshot was asked for.
func (s *State) merge(children []string, since uint64) {
	next := make([]*contender, 0, len(children))
	top := unknown
	for _, name := range children {
		if c := s.recognise(name); c != nil {
			c.seenAt = s.clock
			next = append(next, c)
			top = max(top, c.seq)
		}
	}
	s.horizon = max(s.horizon, top)
	var missing []*contender
	for _, c := range s.list {
		known := c.ours && c.answered && c.bornAt <= since
		switch {
		case c.seenAt == s.clock:
		case c.seq > top && !known:
			next = append(next, c)
		case c.ours:
			missing = append(missing, c)
		default:
			c.listed = false
		}
	}
	slices.SortFunc(next, func(a, b *contender) int { return int(a.seq - b.seq) })
	s.list, s.foreign = next, 0
	for _, c := range next {
		c.listed, c.unsure = true, false
		if !c.ours {
			s.foreign++
		}
	}
	s.advance()
	for _, c := range missing {
		c.listed = false
		s.vanish(c)
	}
}

// recognise is the contender that a child of the directory is, if it is one that
// counts.
func (s *State) recognise(name string) *contender {
	seq, kind, ok := Parse(name)
	if !ok {
		s.report(name)
		return nil
	}
	if serial, mine := s.in.serial(name); mine && serial >= s.oldest {
		c := s.ours[serial]
		if c == nil || c.stage == leaving || c.stage == abandoned {
			return nil // on its way out
		}
		if c.stage == creating {
			// Ours, but its Created is still on its way. It stands in the queue
			// before those behind it nevertheless.
			c.name, c.seq = name, seq
		}
		return c
	}
	if c := s.find(name); c != nil {
		return c
	}
	return &contender{name: name, seq: seq, kind: kind}
}

func (s *State) report(name string) {
	if !s.reported[name] && len(s.reported) < maxReported {
		s.reported[name] = true
		s.effect(Effect{Do: DoReport, Node: name})
	}
}

// maxReported bounds the memory of a lock whose directory is used for other things.
const maxReported = 100

func (e Watched) apply(s *State) {
	if e.Epoch != s.epoch {
		return
	}
	for name, w := range s.watches {
		if w.serial == e.Serial {
			w.active = true
			if slices.Contains(e.Gone, name) {
				s.departed(name)
			}
		}
	}
	s.settle()
}

func (e Wake) apply(s *State) {
	if e.Epoch != s.epoch {
		return
	}
	delete(s.watches, e.Node)
	if e.Deleted {
		s.departed(e.Node)
	}
	s.settle()
}

// departed notes that a node is gone.
func (s *State) departed(name string) {
	delete(s.watches, name)
	switch c := s.find(name); {
	case c == nil:
	case c.ours:
		s.vanish(c)
	default:
		s.delist(c)
	}
}

func (Tick) apply(s *State) {
	if s.session != Connected {
		return
	}
	var ask []string
	age := func(c *contender) {
		if c.aged && s.watches[c.name] == nil {
			ask = append(ask, c.name)
		}
		c.aged = true
	}
	last := len(s.list)
	if len(s.waiting) > 0 {
		age(s.waiting[0])
		last = place(s.list, s.waiting[0].seq)
	}
	for _, c := range s.list[:last] {
		if c.ours && c.stage == held {
			age(c)
		}
	}
	if len(ask) > 0 {
		s.askWatch(ask)
	}
}

func (e Failed) apply(s *State) {
	if c := s.ours[e.Serial]; c != nil {
		s.createFailed(c, e)
	} else if e.Serial == s.listing {
		s.listing, s.listAgain = 0, false
		s.blind(e)
	} else {
		for name, w := range s.watches {
			if w.serial == e.Serial {
				delete(s.watches, name)
			}
		}
		s.blind(e)
	}
	s.settle()
}

func (s *State) createFailed(c *contender, e Failed) {
	switch {
	case c.stage == leaving && e.Why != SessionLost && c.released:
		delete(s.ours, c.serial)
		c.released = false
		s.refuse(c.releaser, e.Why)
		return
	case c.stage == leaving: // with the session goes the node
		s.gone(c)
		return
	case c.answered:
		return
	}
	s.answer(c)
	delete(s.ours, c.serial)
	s.delist(c)
	switch {
	case c.stage == abandoned:
	case e.Why == SessionLost, e.Why == NodeDeleted:
		s.send(c)
	default:
		c.stage = leaving // there is nothing to delete
		s.refuseAll(c, e.Why)
	}
}

// blind refuses those who wait for what cannot be seen.
func (s *State) blind(e Failed) {
	if e.Epoch != s.epoch || e.Why == SessionLost {
		return // the session's own event says what follows
	}
	for len(s.waiting) > 0 {
		s.refuseAll(s.waiting[0], e.Why)
	}
	// Those who hold are to be verified nevertheless.
	var ask []string
	for _, c := range s.list {
		if c.ours && c.stage == held && s.watches[c.name] == nil && e.Serial != s.watchedBlind {
			ask = append(ask, c.name)
		}
	}
	if len(ask) > 0 {
		s.askWatch(ask)
		s.watchedBlind = s.serials
	}
}

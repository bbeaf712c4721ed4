package queue

import "slices"

// ---- requests

func (e Acquire) apply(s *State) {
	if s.closed != 0 {
		s.refuse(e.ID, s.closed)
		return
	}
	if c := s.owners[e.Owner]; c != nil && e.Owner != "" {
		s.join(c, e)
		return
	}
	if e.Try && s.takenHere(e.Kind) {
		s.refuse(e.ID, NotAcquired)
		return
	}
	c := &contender{ours: true, kind: e.Kind, owner: e.Owner, data: e.Data}
	c.requests = append(c.buf[:0], request{e.ID, e.Try})
	s.requests[e.ID] = c
	if e.Owner != "" {
		s.owners[e.Owner] = c
	}
	s.send(c)
}

// join lets a further request of an owner share its contender.
func (s *State) join(c *contender, e Acquire) {
	switch {
	case c.stage == lost:
		// Its owner does not know yet, or does not care. Either way what it held
		// is not held any more, and a re-entry must not pretend that it is.
		s.refuse(e.ID, c.why)
	case c.stage == held:
		s.requests[e.ID] = c
		c.requests = append(c.requests, request{id: e.ID})
		s.grantRequest(c, e.ID)
	case e.Try:
		s.refuse(e.ID, NotAcquired)
	default:
		s.requests[e.ID] = c
		c.requests = append(c.requests, request{id: e.ID})
	}
}

// takenHere tells that contenders of this process alone keep the lock from one that
// comes now. Those of others may be gone without our knowing: ask ZooKeeper.
func (s *State) takenHere(kind Kind) bool {
	set, n := s.rule.BlockedBy[kind], 0
	for i := len(s.list) - 1; i >= 0 && n < s.rule.Permits; i-- {
		if c := s.list[i]; c.ours && set.Has(c.kind) {
			n++
		}
	}
	for _, early := range [][]*contender{s.outstanding, s.unsent} {
		for i := 0; i < len(early) && n < s.rule.Permits; i++ {
			c := early[i]
			if !c.listed && (c.stage == creating || c.stage == unsent) && set.Has(c.kind) {
				n++
			}
		}
	}
	return n >= s.rule.Permits
}

func (e Cancel) apply(s *State) {
	if c := s.requests[e.ID]; c != nil {
		s.withdraw(c, e.ID, e.Why)
		s.settle()
	}
}

func (e Release) apply(s *State) {
	c := s.requests[e.ID]
	switch {
	case c == nil:
		s.refuse(e.ID, NotHeld)
	case c.stage == lost:
		s.drop(c, e.ID)
		s.refuse(e.ID, c.why)
	case c.stage != held:
		s.refuse(e.ID, NotHeld)
	default:
		s.drop(c, e.ID)
		if n := len(c.requests); n > 0 {
			s.effect(Effect{Do: DoReleased, ID: e.ID, StillHeld: n})
			return
		}
		c.released, c.releaser = true, e.ID
		s.leave(c)
	}
	s.settle()
}

// withdraw ends a request in whatever stage it is.
func (s *State) withdraw(c *contender, id ID, why Why) {
	s.drop(c, id)
	s.refuse(id, why)
	if len(c.requests) == 0 && c.stage != lost {
		s.leave(c)
	}
}

// drop takes a request off its contender. With the last one the contender stops
// being its owner's.
func (s *State) drop(c *contender, id ID) {
	delete(s.requests, id)
	hadTry := c.hasTry()
	c.requests = slices.DeleteFunc(c.requests, func(r request) bool { return r.id == id })
	if c.stage == queued && hadTry && !c.hasTry() {
		s.tries--
	}
	if len(c.requests) == 0 {
		s.disown(c)
	}
}

func (s *State) disown(c *contender) {
	if s.owners[c.owner] == c {
		delete(s.owners, c.owner)
	}
}

func (s *State) refuse(id ID, why Why) { s.effect(Effect{Do: DoRefuse, ID: id, Why: why}) }

func (s *State) grantRequest(c *contender, id ID) {
	s.effect(Effect{Do: DoGrant, ID: id, Node: c.name, Czxid: c.czxid, Step: c.step})
}

// refuseAll refuses whatever wants the contender, which leaves.
func (s *State) refuseAll(c *contender, why Why) {
	for len(c.requests) > 0 {
		id := c.requests[0].id
		s.drop(c, id)
		s.refuse(id, why)
	}
	s.leave(c)
}

// ---- nodes

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

// ---- what others did

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

// ---- the session

func (e Session) apply(s *State) {
	switch {
	case e.State == Lost || e.Epoch != s.epoch:
		s.loseSession()
		s.epoch, s.oldest = e.Epoch, s.serials+1
	case e.State == Connected && s.session == Suspended:
		// What happened meanwhile may have been missed: look again, at the
		// contenders and at what is watched.
		s.session = Connected
		clear(s.watches)
		if len(s.list) > 0 {
			s.askList()
		}
	}
	s.session = e.State
	if s.session != Lost {
		again := slices.DeleteFunc(s.unsent, hasLeft)
		s.unsent, s.left = nil, 0
		for _, c := range again {
			s.send(c)
		}
	}
	s.settle()
}

// loseSession ends what the session carried. Waiting contenders are kept for the
// next session, in their order.
func (s *State) loseSession() {
	s.session = Lost
	again := slices.Concat(s.waiting, slices.DeleteFunc(s.outstanding, func(c *contender) bool {
		return c.answered || c.stage != creating
	}), slices.DeleteFunc(s.unsent, hasLeft))
	s.left = 0
	for _, c := range s.inOrder() {
		switch c.stage {
		case held:
			s.lose(c, SessionLost)
		case leaving:
			s.gone(c)
		}
	}
	for _, c := range s.list {
		c.listed = false
	}
	clear(s.ours)
	clear(s.watches)
	s.list, s.foreign, s.waiting, s.tries, s.outstanding, s.unsent = nil, 0, nil, 0, nil, nil
	s.listing, s.listAgain, s.horizon, s.directory = 0, false, unknown, 0
	for _, c := range again {
		s.send(c)
	}
}

// inOrder is ours by serial: effects come in an order that does not depend on a map.
func (s *State) inOrder() []*contender {
	all := make([]*contender, 0, len(s.ours))
	for _, c := range s.ours {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *contender) int { return int(int64(a.serial) - int64(b.serial)) })
	return all
}

func (e Close) apply(s *State) {
	s.closed = e.Why
	for _, c := range slices.Concat(s.unsent, s.inOrder()) {
		switch c.stage {
		case held:
			s.lose(c, e.Why)
			s.delist(c)
			s.delete(c)
		case unsent, creating, queued:
			s.refuseAll(c, e.Why)
		case leaving: // nobody will hear of the end of its Delete
			if c.released {
				c.released = false
				s.refuse(c.releaser, e.Why)
			}
		}
	}
}

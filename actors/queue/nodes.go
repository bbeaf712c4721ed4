package queue

import (
	"fmt"
	"slices"
)

// The life of our own nodes.

// send has the contender's node created, or keeps the contender until that is
// possible.
func (s *State) send(c *contender) {
	if c.stage != unsent { // its former Create may stand behind others that are not answered
		s.outstanding = slices.DeleteFunc(s.outstanding, func(o *contender) bool { return o == c })
	}
	if c.joint && c.serial != 0 {
		c.stage = leaving // there is no node
		s.refuseAll(c, s.whyGone())
		return
	}
	if s.session == Lost {
		c.stage = unsent
		s.unsent = append(s.unsent, c)
		return
	}
	s.serials++
	c.stage, c.serial, c.sentAt = creating, s.serials, s.clock
	c.answered, c.bornAt, c.unsure, c.aged, c.revoked = false, 0, false, false, false
	put(&s.ours, c.serial, c)
	s.outstanding = append(s.outstanding, c)
	create := Effect{Do: DoCreate, Serial: c.serial, Node: s.in.Prefix(c.serial, s.rule.Markers[c.kind]), Data: []byte(c.data)}
	if c.leader != nil {
		c.leader.followers++
		create.Node, create.Beside = fmt.Sprintf("%s%010d", create.Node, c.leader.seq), c.leader.name
	}
	if c.joint {
		create.ID = c.requests[0].id
	}
	s.effect(create)
}

// whyGone is why a node is gone that nobody of us deleted.
func (s *State) whyGone() Why {
	if s.session == Lost {
		return SessionLost
	}
	return NodeDeleted
}

// leave ends a contender that nobody wants any more, however far it came.
func (s *State) leave(c *contender) {
	switch {
	case c.followers > 0:
		return // until they have their places
	case c.stage == marking && s.closed == 0:
		return // what it has begun goes on, and then it leaves cleanly
	}
	s.stopWaiting(c)
	s.delist(c)
	switch c.stage {
	case unsent:
		c.stage = leaving
		s.tidyUnsent()
	case creating:
		c.stage = abandoned // its node will be deleted once it is known
	case queued, marking:
		s.delete(c)
	case held:
		s.clear(c)
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
	if s.outlook.coming { // the deletion must end the watch, so it comes later
		s.outlook.before = append(s.outlook.before, c)
		return
	}
	last := s.byCzxid && len(s.list) == 0 && len(s.outstanding) == 0 && len(s.unsent) == 0
	s.effect(Effect{Do: DoDelete, Serial: c.serial, Node: c.name, Reset: last})
}

func (e Created) apply(s *State) {
	c := s.ours[e.Serial]
	if c == nil || e.Epoch != s.epoch || c.answered {
		return
	}
	seq, _, ok := s.rule.Parse(e.Node)
	current := s.enter(e.Directory)
	s.answer(c)
	if !current {
		// The node went with a directory that is no more.
		s.forgotten(c)
		s.settle()
		return
	}
	c.name, c.seq, c.czxid, c.step, c.bornAt = e.Node, seq, e.Czxid, e.Step, s.clock
	leader := s.part(c)
	if exhausted(seq) && !s.byCzxid {
		s.rankByCzxid()
	}
	if leader != nil {
		c.czxid, c.step = leader.czxid, leader.step // it goes on with what was granted then
	}
	c.rank = rankOf(s.byCzxid, seq, c.czxid, c.step)
	s.locate(c, e)
	switch {
	case c.stage == abandoned:
		s.delete(c)
	case leader != nil:
		s.enlist(c)
		s.grant(c)
	case !ok:
		s.refuseAll(c, Exhausted)
		if c.stage == abandoned {
			s.delete(c)
		}
	default:
		if e.Others >= 0 && e.Others+int(c.step) < s.rule.Permits && !s.byCzxid {
			s.roomTo = max(s.roomTo, c.seq) // whoever those ahead are, they only get fewer
		}
		s.enlist(c)
		s.startWaiting(c)
		s.advance()
	}
	if leader != nil && len(leader.requests) == 0 && leader.stage == held {
		s.leave(leader)
	}
	if e.Others < 0 && e.Children != nil {
		s.merge(e.Children, nil, c.sentAt)
	}
	s.settle()
}

// part ends the bond of a contender and its leader, which it gives.
func (s *State) part(c *contender) *contender {
	leader := c.leader
	if leader != nil {
		c.leader = nil
		leader.followers--
	}
	return leader
}

// enter takes note of the directory that an answer is about; false if it is a former
// one. Nothing that was known of a former directory holds for the next.
func (s *State) enter(directory int64) bool {
	if directory <= s.directory {
		return directory == s.directory
	}
	s.directory = directory
	s.horizon, s.roomTo, s.foreign, s.byCzxid = unknown, unknown, 0, false
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
		s.outstanding = shift(s.outstanding)
	}
}

// locate learns of the queue from where a new node came to stand in it.
func (s *State) locate(c *contender, e Created) {
	if e.Others == 0 {
		// Only the nodes of its own transaction were there, which have
		// consecutive numbers: whoever came earlier is gone.
		floor := c.rank.major - int64(c.step) - 1
		if s.byCzxid && exhausted(c.seq) {
			floor = c.czxid // the others of its transaction are ours: see early
		}
		s.horizon = max(s.horizon, floor)
		s.empty(floor, c)
	}
	if c.seq == s.horizon+1 && !s.byCzxid {
		s.horizon++
	}
}

// empty is for a directory that held only those made with c when c was: all others that rank
// up to floor are gone.
func (s *State) empty(floor int64, c *contender) {
	var gone []*contender
	for _, o := range s.list {
		if o.rank.major > floor {
			break
		}
		if !o.ours || o.answered && o.czxid < c.czxid {
			gone = append(gone, o)
		}
	}
	for _, o := range gone {
		if o.ours {
			s.vanish(o)
		} else {
			s.delist(o)
		}
	}
}

func rankOf(byCzxid bool, seq, czxid int64, step uint32) rank {
	switch {
	case seq == stranger:
		return rank{major: unknown - 1}
	case !byCzxid:
		return rank{major: seq}
	case exhausted(seq):
		return rank{czxid, step}
	}
	return rank{major: seq + unknown} // made before any of those
}

// rankByCzxid is for a directory whose numbers have come near their end: beyond it
// ZooKeeper gives the same number to several. What is known of others is known by
// their numbers only, and is forgotten.
func (s *State) rankByCzxid() {
	s.byCzxid, s.horizon, s.roomTo, s.foreign = true, unknown, unknown, 0
	old := s.list
	s.list = nil
	clear(s.waiting)
	for _, c := range old {
		c.listed = false
		if !c.ours || !c.answered {
			continue
		}
		c.rank = rankOf(s.byCzxid, c.seq, c.czxid, c.step)
		s.enlist(c)
		if c.stage == queued {
			s.enqueue(c)
		}
	}
}

// advance moves the horizon over numbers that have become consecutive.
func (s *State) advance() {
	if s.byCzxid {
		return // czxids are not consecutive
	}
	for i := place(s.list, rank{major: s.horizon + 1}); i < len(s.list) && s.list[i].seq == s.horizon+1; i++ {
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
	if c == s.mark.c {
		s.mark = mark{}
	}
	delete(s.ours, c.serial)
	s.stopWaiting(c)
	s.delist(c)
	switch {
	case c.stage == held:
		s.lose(c, NodeDeleted)
	case len(c.requests) > 0:
		s.send(c) // wait again, at the end of the queue
	}
}

func (s *State) followersOf(c *contender) (all []*contender) {
	if c.followers == 0 {
		return nil
	}
	return slices.DeleteFunc(s.inOrder(), func(f *contender) bool { return f.leader != c })
}

// lose ends a grant that nobody released.
func (s *State) lose(c *contender, why Why) {
	for _, f := range s.followersOf(c) {
		s.part(f)
		s.refuseAll(f, why)
	}
	s.refuseRelease(c, why) // it would have left
	c.stage, c.why = lost, why
	for _, r := range c.requests {
		s.effect(Effect{Do: DoLose, ID: r.id, Why: why})
		if c.owner == "" {
			s.requests.Remove(r.id)
		}
	}
}

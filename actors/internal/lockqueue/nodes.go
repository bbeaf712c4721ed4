package lockqueue

import (
	"fmt"
	"math"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
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
	c.answered, c.bornAt, c.provenAt, c.doubtedAt, c.revoked, c.placed = false, 0, 0, 0, false, false
	c.look = c.leader == nil && !s.waitsForOurs()
	after := s.after(c)
	put(&s.ours, c.serial, c)
	s.outstanding = append(s.outstanding, c)
	create := Effect{Kind: CreateNode, Serial: c.serial, Node: s.in.Prefix(c.serial, s.rule.Markers[c.kind]), Data: []byte(c.data), ListAfter: c.look, After: after, DirectoryExists: len(s.list) > s.foreign}
	if c.leader != nil {
		c.leader.followers++
		create.Node, create.Beside = fmt.Sprintf("%s%010d", create.Node, c.leader.seq), c.leader.name
	}
	if c.joint {
		create.ID = c.requests[0].id
	}
	s.effect(create)
}

// waitsForOurs reports whether a new contender comes behind others of ours. Then its place
// follows from theirs, most of the time.
func (s *State) waitsForOurs() bool {
	return len(s.list) > s.foreign || slices.ContainsFunc(s.outstanding, func(c *contender) bool { return !c.answered && c.stage == creating })
}

// after returns the node of ours that is about to go, if one transaction with its deletion
// can tell all that a read behind the creation of c would tell: that c's node is in the same
// directory and, by the number that follows on the horizon, that all nodes ahead are known.
func (s *State) after(c *contender) string {
	last := s.departing
	if last == nil || c.leader != nil || s.byCzxid {
		return ""
	}
	return last.name
}

// whyGone is why a node is gone that nobody of us deleted.
func (s *State) whyGone() requests.Reason {
	if s.session == Lost {
		return requests.SessionLost
	}
	return requests.NodeDeleted
}

// leave ends a contender that nobody wants any more, however far it came.
func (s *State) leave(c *contender) {
	switch {
	case c.followers > 0:
		return // until they have their places
	case c.stage == marking && !s.abandonsDelay():
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
	c.mayBeGone = c.mayBeGone || last // its reset is repeated as a delete if the outcome is unknown
	if s.departing = nil; c.placed && !last {
		s.departing = c
	}
	s.effect(Effect{Kind: DeleteNode, Serial: c.serial, Node: c.name, WithDirectory: last})
}

func (e Created) apply(s *State) {
	c := s.ours[e.Serial]
	if c == nil || e.Epoch != s.epoch || c.answered {
		return
	}
	if e.Directory != 0 {
		s.enter(e.Directory)
	}
	sentAt, looked := c.sentAt, e.Directory != 0 && (c.look || len(e.Children) > 0)
	s.answer(c)
	if e.Czxid < s.directory {
		// The node went with a directory that is no more.
		s.forgotten(c)
		s.settle()
		return
	}
	// The node that was seen may be one of the same name in a former directory: its creation was
	// repeated. The former directory is told by what was read behind this one.
	seen := c.listed && c.name == e.Node && (e.SameDirectory || e.Directory != 0)
	s.delist(c) // the place may be that of a node that is gone, whose creation was repeated
	seq, _, ok := s.rule.Parse(e.Node)
	c.name, c.seq, c.czxid, c.step, c.bornAt = e.Node, seq, e.Czxid, e.Step, s.clock
	c.provenAt = max(c.provenAt, c.sentAt)
	if !seen {
		c.doubtedAt = s.departedAt // that snapshot does not show it either
	}
	// A newer directory is younger than e: had there been one, e would have been forgotten above.
	c.placed = e.SameDirectory || e.Directory != 0 && e.Directory == s.directory
	c.generation = e.Generation
	leader := s.part(c)
	if queue.NearEnd(seq) && !s.byCzxid {
		s.rankByCzxid()
	}
	if leader != nil {
		c.generation, c.czxid, c.step = leader.generation, leader.czxid, leader.step // it goes on with what was granted then
	}
	c.rank = s.rank(c)
	late := leader == nil && !seen && c.rank.major <= s.horizon
	if c.placed && c.seq == s.horizon+1 && !s.byCzxid {
		s.horizon++
	}
	switch {
	case c.stage == abandoned:
		s.delete(c)
	case leader != nil:
		s.enlist(c)
		s.grant(c)
	case !ok:
		s.refuseAll(c, requests.SequenceExhausted)
		if c.stage == abandoned {
			s.delete(c)
		}
	case late && !s.byCzxid:
		s.replace(c) // what was seen since does not have it
	case late: // what was seen since has it, or has not: a list with czxids will tell
		s.startWaiting(c)
	default:
		s.enlist(c)
		s.startWaiting(c)
		s.advance()
	}
	if leader != nil && len(leader.requests) == 0 && leader.stage == held {
		s.leave(leader)
	}
	if looked {
		s.merge(e.Children, nil, sentAt)
		if c.listed && c.answered && !slices.Contains(e.Children, c.name) {
			s.vanish(c) // between its creation and the read
		}
	}
	s.settle()
}

// unlisted are those of ours that wait, and whose place is not known yet.
func (s *State) unlisted() []*contender {
	if !s.byCzxid {
		return nil
	}
	return slices.DeleteFunc(s.inLine(), func(c *contender) bool { return c.listed })
}

// replace has a contender queue again, by another node. The one that it has is deleted, be
// it there or not.
func (s *State) replace(c *contender) {
	s.stopWaiting(c)
	s.delist(c)
	former := &contender{ours: true, kind: c.kind, name: c.name, seq: c.seq, rank: c.rank, serial: c.serial, answered: true}
	s.ours[c.serial] = former
	s.delete(former)
	s.send(c)
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

// enter takes note of the directory that an answer is about. It reports false if that is a
// former one. Nothing that was known of a former directory holds for the next, and no node
// that was made before it is in it.
func (s *State) enter(directory int64) bool {
	if directory <= s.directory {
		return directory == s.directory
	}
	s.directory, s.departing = directory, nil
	old := slices.Concat(s.list, s.unlisted())
	s.horizon, s.foreign, s.byCzxid, s.list = unknown, 0, false, nil
	clear(s.waiting)
	for _, c := range old {
		c.listed = false
		switch {
		case !c.ours:
		case !c.answered:
			c.name = "" // seen in the former directory
		case c.czxid < directory:
			s.vanish(c)
		default: // made since, in this directory or one that comes after it
			c.rank, c.placed = s.rank(c), false
			s.enlist(c)
			if c.stage == queued {
				s.enqueue(c)
			}
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

func rankOf(byCzxid bool, seq, czxid int64) rank {
	if seq == stranger {
		return rank{major: unknown - 1}
	}
	return rank{major: queue.Rank(byCzxid, seq, czxid)}
}

// rank returns the rank of a contender of ours whose node is known.
func (s *State) rank(c *contender) rank {
	r := rankOf(s.byCzxid, c.seq, c.czxid)
	if s.byCzxid && queue.NearEnd(c.seq) {
		r.minor = uint64(c.step)<<32 | c.serial&math.MaxUint32
	}
	return r
}

// rankByCzxid is for a directory whose numbers have come near their end: beyond it
// ZooKeeper gives the same number to several. What is known of others is known by
// their numbers only, and is forgotten.
func (s *State) rankByCzxid() {
	s.byCzxid, s.horizon, s.foreign = true, unknown, 0
	old := s.list
	s.list = nil
	clear(s.waiting)
	for _, c := range old {
		c.listed = false
		if !c.ours || !c.answered {
			continue
		}
		c.rank = s.rank(c)
		s.enlist(c)
		if c.stage == queued {
			s.enqueue(c)
		}
	}
}

// advance moves the horizon over numbers that have become consecutive. It stops at a node of
// ours that may be in another directory: there the same numbers belong to others.
func (s *State) advance() {
	if s.byCzxid {
		return // czxids are not consecutive
	}
	for i := place(s.list, rank{major: s.horizon + 1}); i < len(s.list) && s.list[i].seq == s.horizon+1 && (s.list[i].placed || !s.list[i].ours); i++ {
		s.horizon++
	}
}

func (e Deleted) apply(s *State) {
	c := s.ours[e.Serial]
	if c == nil || c.stage != leaving {
		return
	}
	if e.Missing && !c.mayBeGone { // by the one who deleted it, others of ours may be deleted, too
		s.refuseRelease(c, requests.NodeDeleted)
		s.doubtedAt = s.clock
		if len(s.list) > s.foreign {
			s.askList()
		}
	}
	s.gone(c)
	s.settle()
}

// gone forgets a contender whose node is no more.
func (s *State) gone(c *contender) {
	delete(s.ours, c.serial)
	if c == s.departing {
		s.departing = nil
	}
	if c.released {
		c.released = false
		s.effect(Effect{Kind: ConfirmRelease, ID: c.releaser()})
	}
}

// vanish is for a node of ours that another client has deleted.
func (s *State) vanish(c *contender) {
	if !c.answered { // its Create may yet be repeated, and is answered in any case
		s.delist(c)
		c.name = ""
		return
	}
	if c == s.mark.c {
		s.mark = mark{}
	}
	delete(s.ours, c.serial)
	s.stopWaiting(c)
	s.delist(c)
	switch {
	case c.stage == held:
		s.lose(c, requests.NodeDeleted)
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
func (s *State) lose(c *contender, why requests.Reason) {
	for _, f := range s.followersOf(c) {
		s.part(f)
		s.refuseAll(f, why)
	}
	s.refuseRelease(c, why) // it would have left
	c.stage, c.why = lost, why
	for _, r := range c.requests {
		s.effect(Effect{Kind: Lose, ID: r.id, Reason: why})
		if c.owner == "" {
			s.requests.Remove(r.id)
		}
	}
}

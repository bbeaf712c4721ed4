package lockqueue

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The life of this process's own nodes.

// requestCreate has the entry's node created, or keeps the entry until there is a session.
func (s *State) requestCreate(c *entry) {
	if c.stage != unsent { // its former CreateNode may be behind others that are not answered
		s.unanswered = slices.DeleteFunc(s.unanswered, func(o *entry) bool { return o == c })
	}
	if c.atomic() && c.serial != 0 {
		c.stage = leaving // there is no node
		s.refuseAll(c, s.goneReason())
		return
	}
	if s.session == Lost {
		c.stage = unsent
		s.unsent = append(s.unsent, c)
		return
	}
	s.lastSerial++
	c.stage, c.serial, c.sentAt = creating, s.lastSerial, s.clock
	c.createdAt, c.provenAt, c.doubtedAt, c.revoked, c.inDirectory = 0, 0, 0, false, false
	c.listAfter = c.downgradeOf == nil && !s.behindOwn()
	after := s.after(c)
	put(&s.entries, c.serial, c)
	s.unanswered = append(s.unanswered, c)
	create := Effect{Kind: CreateNode, Serial: c.serial, Node: s.incarnation.Prefix(c.serial, s.rule.Markers[c.kind]), Data: []byte(c.data), Owner: c.owner, ListAfter: c.listAfter, After: after, DirectoryExists: len(s.contenders) > s.foreign}
	if c.downgradeOf != nil {
		c.downgradeOf.downgrades++
		create.Node, create.Beside = fmt.Sprintf("%s%010d", create.Node, c.downgradeOf.seq), c.downgradeOf.name
	}
	if c.atomic() {
		create.ID = c.requests[0].id
	}
	s.effect(create)
}

// behindOwn reports whether a new contender comes behind others of this process. Then its place
// mostly follows from theirs.
func (s *State) behindOwn() bool {
	return len(s.contenders) > s.foreign || slices.ContainsFunc(s.unanswered, func(c *entry) bool { return c.stage == creating })
}

// after returns the node of this process that is about to go, if one transaction with its deletion
// shows as much as a read behind the creation of c: that c's node is in the same directory and, if
// its number follows on completeThrough, that all contenders ahead are known.
func (s *State) after(c *entry) string {
	last := s.lastDeleted
	if last == nil || c.downgradeOf != nil || s.byCzxid {
		return ""
	}
	return last.name
}

// goneReason returns why a node is gone that this process has not deleted.
func (s *State) goneReason() requests.Reason {
	if s.session == Lost {
		return requests.SessionLost
	}
	return requests.NodeDeleted
}

// leave ends an entry without requests, in whatever stage it is.
func (s *State) leave(c *entry) {
	switch {
	case c.downgrades > 0:
		return // until their CreateNodes are answered
	case c.stage == makingMarker && !s.abandonDelay():
		return // the transaction for the held marker goes on, and then the entry leaves
	}
	s.stopWaiting(c)
	s.removeFromList(&c.contender)
	switch c.stage {
	case unsent:
		c.stage = leaving
		s.compactUnsent()
	case creating:
		c.stage = abandoned // its node is deleted once it is known
	case created, queued, makingMarker:
		s.deleteNode(c)
	case held:
		if c.unclean {
			s.deleteNode(c)
		} else {
			s.deleteCleanly(c)
		}
	}
}

// compactUnsent takes the entries that have left out of unsent once they are many. To take out each
// of them at once would cost the length of the list.
func (s *State) compactUnsent() {
	s.unsentLeft++
	if s.unsentLeft*2 > len(s.unsent) {
		s.unsent = slices.DeleteFunc(s.unsent, hasLeft)
		s.unsentLeft = 0
	}
}

func hasLeft(c *entry) bool { return c.stage == leaving }

func (s *State) deleteNode(c *entry) {
	c.stage = leaving
	if s.contention.requested { // the deletion ends the watch on the directory, so it comes after that
		s.contention.deleteAfter = append(s.contention.deleteAfter, c)
		return
	}
	last := s.byCzxid && len(s.contenders) == 0 && len(s.unanswered) == 0 && len(s.unsent) == 0
	c.mayBeDeleted = c.mayBeDeleted || last // the actor repeats it as a plain deletion if the outcome is unknown
	if s.lastDeleted = nil; c.inDirectory && !last {
		s.lastDeleted = c
	}
	s.effect(Effect{Kind: DeleteNode, Serial: c.serial, Node: c.name, WithDirectory: last})
}

func (e Created) apply(s *State) {
	c := s.entries[e.Serial]
	if c == nil || c.answered() {
		return
	}
	if e.Directory != 0 {
		s.enterDirectory(e.Directory)
	}
	sentAt, hasChildren := c.sentAt, e.Directory != 0 && (c.listAfter || len(e.Children) > 0)
	unwanted := c.stage == abandoned
	s.markAnswered(c)
	if e.Czxid < s.directory {
		// The node went with a former directory.
		s.createdInOldDirectory(c)
		s.grantEligible()
		return
	}
	// The node that was seen may be one of the same name in a former directory, if the creation was
	// repeated. The directory read behind this creation tells.
	seen := c.listed && c.name == e.Node && (e.SameDirectory || e.Directory != 0)
	s.removeFromList(&c.contender) // its place may belong to a node that is gone, if the creation was repeated
	seq, _, ok := s.rule.Parse(e.Node)
	c.name, c.seq, c.czxid, c.step, c.createdAt = e.Node, seq, e.Czxid, e.Step, s.clock
	c.provenAt = max(c.provenAt, c.sentAt)
	if !seen {
		c.doubtedAt = s.departureSeenAt // the list that showed departures does not show this node either
	}
	// A newer directory than e's would have had e go to createdInOldDirectory above.
	c.inDirectory = e.SameDirectory || e.Directory != 0 && e.Directory == s.directory
	c.generation = e.Generation
	origin := s.detach(c)
	if queue.NearEnd(seq) && !s.byCzxid {
		s.switchToCzxids()
	}
	if origin != nil {
		c.generation, c.czxid, c.step = origin.generation, origin.czxid, origin.step // it goes on with the token that was granted
	}
	c.rank = s.rank(c)
	late := origin == nil && !seen && c.rank.major <= s.completeThrough
	if c.inDirectory && c.seq == s.completeThrough+1 && !s.byCzxid {
		s.completeThrough++
	}
	switch {
	case unwanted:
		s.deleteNode(c)
	case origin != nil:
		s.addToList(&c.contender)
		s.grant(c)
	case !ok:
		s.refuseAll(c, requests.SequenceExhausted)
	case late && !s.byCzxid:
		s.requeue(c) // no list since then shows it: others may have passed it
	case late: // a list with czxids will tell whether others have passed it
		s.startWaiting(c)
	default:
		s.addToList(&c.contender)
		s.startWaiting(c)
		s.extendComplete()
	}
	if origin != nil && len(origin.requests) == 0 && origin.stage == held {
		s.leave(origin)
	}
	if hasChildren {
		s.merge(e.Children, nil, sentAt)
		if c.listed && c.answered() && !slices.Contains(e.Children, c.name) {
			s.ownNodeDeleted(c) // between its creation and the read
		}
	}
	s.grantEligible()
}

// requeue has a contender queue again, by a new node. The node that it has is deleted; it may exist
// or not, and others may have passed it.
func (s *State) requeue(c *entry) {
	s.stopWaiting(c)
	s.removeFromList(&c.contender)
	former := newEntry(entry{contender: contender{name: c.name, seq: c.seq, rank: c.rank, kind: c.kind}, serial: c.serial})
	s.entries[c.serial] = former
	s.deleteNode(former)
	s.requestCreate(c)
}

// detach ends the bond between an entry and the one beside which it was created, which detach
// returns.
func (s *State) detach(c *entry) *entry {
	origin := c.downgradeOf
	if origin != nil {
		c.downgradeOf = nil
		origin.downgrades--
	}
	return origin
}

// createdInOldDirectory forgets a node that was created in a former directory, and has another one
// created if it is wanted.
func (s *State) createdInOldDirectory(c *entry) {
	delete(s.entries, c.serial)
	s.removeFromList(&c.contender)
	if len(c.requests) > 0 {
		s.requestCreate(c)
	}
}

// markAnswered notes that the entry's CreateNode is answered.
func (s *State) markAnswered(c *entry) {
	c.stage = created
	for len(s.unanswered) > 0 && s.unanswered[0].answered() {
		s.unanswered = shift(s.unanswered)
	}
}

func (e Deleted) apply(s *State) {
	c := s.entries[e.Serial]
	if c == nil || c.stage != leaving {
		return
	}
	if e.Missing && !c.mayBeDeleted { // the client that deleted it may have deleted other nodes of this process, too
		s.refuseRelease(c, requests.NodeDeleted)
		s.doubtedAt = s.clock
		if len(s.contenders) > s.foreign {
			s.requestList()
		}
	}
	s.deleteAcked(c)
	s.grantEligible()
}

// deleteAcked forgets an entry whose node is gone.
func (s *State) deleteAcked(c *entry) {
	delete(s.entries, c.serial)
	if c == s.lastDeleted {
		s.lastDeleted = nil
	}
	if c.releasing {
		c.releasing = false
		s.effect(Effect{Kind: ConfirmRelease, ID: c.releaser()})
	}
}

// ownNodeDeleted goes on after another client has deleted a node of this process. That client may
// have deleted other nodes of this process, too, and contenders of other processes may have passed
// them: their proofs must be newer.
func (s *State) ownNodeDeleted(c *entry) {
	s.doubtedAt = s.clock
	s.ownNodeUnlisted(c)
}

// ownNodeUnlisted is ownNodeDeleted where a list shows which other nodes exist.
func (s *State) ownNodeUnlisted(c *entry) {
	if !c.answered() { // its CreateNode may yet be repeated, and is answered in any case
		s.removeFromList(&c.contender)
		c.name = ""
		return
	}
	if c == s.delay.entry {
		s.delay = delay{}
	}
	delete(s.entries, c.serial)
	s.stopWaiting(c)
	s.removeFromList(&c.contender)
	switch {
	case c.stage == held:
		s.lose(c, requests.NodeDeleted)
	case len(c.requests) > 0:
		s.requestCreate(c) // at the end of the queue
	}
}

func (s *State) downgradesOf(c *entry) (all []*entry) {
	if c.downgrades == 0 {
		return nil
	}
	return slices.DeleteFunc(s.entriesInOrder(), func(f *entry) bool { return f.downgradeOf != c })
}

// lose ends a grant that was not released.
func (s *State) lose(c *entry, why requests.Reason) {
	for _, f := range s.downgradesOf(c) {
		s.detach(f)
		s.refuseAll(f, why)
	}
	s.refuseRelease(c, why) // it was to leave after its downgrades
	c.stage, c.reason = lost, why
	for _, r := range c.requests {
		s.effect(Effect{Kind: Lose, ID: r.id, Reason: why})
		if c.owner == "" {
			s.requests.Remove(r.id)
		}
	}
}

package lockqueue

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The life of this process's own nodes.

// requestCreate has the entry's node created, or keeps the entry until there is a session.
func (s *State) requestCreate(e *entry) {
	if e.stage != unsent { // its former CreateNode may be behind others that are not answered
		s.unanswered = slices.DeleteFunc(s.unanswered, func(o *entry) bool { return o == e })
	}
	if e.atomic() && e.serial != 0 {
		e.stage = leaving // there is no node
		s.refuseAll(e, s.goneReason())
		return
	}
	if s.session == Lost {
		e.stage = unsent
		s.unsent = append(s.unsent, e)
		return
	}
	s.lastSerial++
	e.stage, e.serial, e.sentAt = creating, s.lastSerial, s.clock
	e.createdAt, e.provenAt, e.doubtedAt, e.revoked, e.inDirectory = 0, 0, 0, false, false
	e.listAfter = e.downgradeOf == nil && !s.behindOwn()
	after := s.after(e)
	put(&s.entries, e.serial, e)
	s.unanswered = append(s.unanswered, e)
	create := Effect{Kind: CreateNode, Serial: e.serial, Node: s.incarnation.Prefix(e.serial, s.rule.Markers[e.kind]), Data: []byte(e.data), Owner: e.owner, ListAfter: e.listAfter, After: after, DirectoryExists: len(s.contenders) > s.foreign}
	if e.downgradeOf != nil {
		e.downgradeOf.downgrades++
		create.Node, create.Beside = fmt.Sprintf("%s%010d", create.Node, e.downgradeOf.seq), e.downgradeOf.name
	}
	if e.atomic() {
		create.ID = e.requests[0].id
	}
	s.effect(create)
}

// behindOwn reports whether a new contender comes behind others of this process. Then its place
// mostly follows from theirs.
func (s *State) behindOwn() bool {
	return len(s.contenders) > s.foreign || slices.ContainsFunc(s.unanswered, func(e *entry) bool { return e.stage == creating })
}

// after returns the node of this process that is about to go, if one transaction with its deletion
// shows as much as a read behind the creation of e: that e's node is in the same directory and, if
// its number follows on completeThrough, that all contenders ahead are known.
func (s *State) after(e *entry) string {
	last := s.lastDeleted
	if last == nil || e.downgradeOf != nil || s.byCzxid {
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
func (s *State) leave(e *entry) {
	switch {
	case e.downgrades > 0:
		return // until their CreateNodes are answered
	case e.stage == makingMarker && !s.abandonDelay():
		return // the transaction for the held marker goes on, and then the entry leaves
	}
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	switch e.stage {
	case unsent:
		e.stage = leaving
		s.compactUnsent()
	case creating:
		e.stage = abandoned // its node is deleted once it is known
	case created, queued, makingMarker:
		s.deleteNode(e)
	case held:
		if e.unclean {
			s.deleteNode(e)
		} else {
			s.deleteCleanly(e)
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

func hasLeft(e *entry) bool { return e.stage == leaving }

func (s *State) deleteNode(e *entry) {
	e.stage = leaving
	if s.contention.requested { // the deletion ends the watch on the directory, so it comes after that
		s.contention.deleteAfter = append(s.contention.deleteAfter, e)
		return
	}
	last := s.byCzxid && len(s.contenders) == 0 && len(s.unanswered) == 0 && len(s.unsent) == 0
	e.mayBeDeleted = e.mayBeDeleted || last // the actor repeats it as a plain deletion if the outcome is unknown
	if s.lastDeleted = nil; e.inDirectory && !last {
		s.lastDeleted = e
	}
	s.effect(Effect{Kind: DeleteNode, Serial: e.serial, Node: e.name, WithDirectory: last})
}

func (ev Created) apply(s *State) {
	e := s.entries[ev.Serial]
	if e == nil || e.answered() {
		return
	}
	if ev.Directory != 0 {
		s.enterDirectory(ev.Directory)
	}
	sentAt, hasChildren := e.sentAt, ev.Directory != 0 && (e.listAfter || len(ev.Children) > 0)
	unwanted := e.stage == abandoned
	s.markAnswered(e)
	if ev.Czxid < s.directory {
		// The node went with a former directory.
		s.createdInOldDirectory(e)
		s.grantEligible()
		return
	}
	// The node that was seen may be one of the same name in a former directory, if the creation was
	// repeated. The directory read behind this creation tells.
	seen := e.listed && e.name == ev.Node && (ev.SameDirectory || ev.Directory != 0)
	s.removeFromList(&e.contender) // its place may belong to a node that is gone, if the creation was repeated
	seq, _, ok := s.rule.Parse(ev.Node)
	e.name, e.seq, e.czxid, e.step, e.createdAt = ev.Node, seq, ev.Czxid, ev.Step, s.clock
	e.provenAt = max(e.provenAt, e.sentAt)
	if !seen {
		e.doubtedAt = s.departureSeenAt // the list that showed departures does not show this node either
	}
	// A newer directory than ev's would have had ev go to createdInOldDirectory above.
	e.inDirectory = ev.SameDirectory || ev.Directory != 0 && ev.Directory == s.directory
	e.generation = ev.Generation
	origin := s.detach(e)
	if queue.NearEnd(seq) && !s.byCzxid {
		s.switchToCzxids()
	}
	if origin != nil {
		e.generation, e.czxid, e.step = origin.generation, origin.czxid, origin.step // it goes on with the token that was granted
	}
	e.rank = s.rank(e)
	late := origin == nil && !seen && e.rank.major <= s.completeThrough
	if e.inDirectory && e.seq == s.completeThrough+1 && !s.byCzxid {
		s.completeThrough++
	}
	switch {
	case unwanted:
		s.deleteNode(e)
	case origin != nil:
		s.addToList(&e.contender)
		s.grant(e)
	case !ok:
		s.refuseAll(e, requests.SequenceExhausted)
	case late && !s.byCzxid:
		s.requeue(e) // no list since then shows it: others may have passed it
	case late: // a list with czxids will tell whether others have passed it
		s.startWaiting(e)
	default:
		s.addToList(&e.contender)
		s.startWaiting(e)
		s.extendComplete()
	}
	if origin != nil && len(origin.requests) == 0 && origin.stage == held {
		s.leave(origin)
	}
	if hasChildren {
		s.merge(ev.Children, nil, sentAt)
		if e.listed && e.answered() && !slices.Contains(ev.Children, e.name) {
			s.ownNodeDeleted(e) // between its creation and the read
		}
	}
	s.grantEligible()
}

// requeue has a contender queue again, by a new node. The node that it has is deleted; it may exist
// or not, and others may have passed it.
func (s *State) requeue(e *entry) {
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	former := newEntry(entry{contender: contender{name: e.name, seq: e.seq, rank: e.rank, kind: e.kind}, serial: e.serial})
	s.entries[e.serial] = former
	s.deleteNode(former)
	s.requestCreate(e)
}

// detach ends the bond between an entry and the one beside which it was created, which detach
// returns.
func (s *State) detach(e *entry) *entry {
	origin := e.downgradeOf
	if origin != nil {
		e.downgradeOf = nil
		origin.downgrades--
	}
	return origin
}

// createdInOldDirectory forgets a node that was created in a former directory, and has another one
// created if it is wanted.
func (s *State) createdInOldDirectory(e *entry) {
	delete(s.entries, e.serial)
	s.removeFromList(&e.contender)
	if len(e.requests) > 0 {
		s.requestCreate(e)
	}
}

// markAnswered notes that the entry's CreateNode is answered.
func (s *State) markAnswered(e *entry) {
	e.stage = created
	for len(s.unanswered) > 0 && s.unanswered[0].answered() {
		s.unanswered = shift(s.unanswered)
	}
}

func (ev Deleted) apply(s *State) {
	e := s.entries[ev.Serial]
	if e == nil || e.stage != leaving {
		return
	}
	if ev.Missing && !e.mayBeDeleted { // the client that deleted it may have deleted other nodes of this process, too
		s.refuseRelease(e, requests.NodeDeleted)
		s.doubtedAt = s.clock
		if len(s.contenders) > s.foreign {
			s.requestList()
		}
	}
	s.deleteAcked(e)
	s.grantEligible()
}

// deleteAcked forgets an entry whose node is gone.
func (s *State) deleteAcked(e *entry) {
	delete(s.entries, e.serial)
	if e == s.lastDeleted {
		s.lastDeleted = nil
	}
	if e.releasing {
		e.releasing = false
		s.effect(Effect{Kind: ConfirmRelease, ID: e.releaser()})
	}
}

// ownNodeDeleted goes on after another client has deleted a node of this process. That client may
// have deleted other nodes of this process, too, and contenders of other processes may have passed
// them: their proofs must be newer.
func (s *State) ownNodeDeleted(e *entry) {
	s.doubtedAt = s.clock
	s.ownNodeUnlisted(e)
}

// ownNodeUnlisted is ownNodeDeleted where a list shows which other nodes exist.
func (s *State) ownNodeUnlisted(e *entry) {
	if !e.answered() { // its CreateNode may yet be repeated, and is answered in any case
		s.removeFromList(&e.contender)
		e.name = ""
		return
	}
	if e == s.delay.entry {
		s.delay = delay{}
	}
	delete(s.entries, e.serial)
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	switch {
	case e.stage == held:
		s.lose(e, requests.NodeDeleted)
	case len(e.requests) > 0:
		s.requestCreate(e) // at the end of the queue
	}
}

func (s *State) downgradesOf(e *entry) (all []*entry) {
	if e.downgrades == 0 {
		return nil
	}
	return slices.DeleteFunc(s.entriesInOrder(), func(f *entry) bool { return f.downgradeOf != e })
}

// lose ends a grant that was not released.
func (s *State) lose(e *entry, why requests.Reason) {
	for _, f := range s.downgradesOf(e) {
		s.detach(f)
		s.refuseAll(f, why)
	}
	s.refuseRelease(e, why) // it was to leave after its downgrades
	e.stage, e.reason = lost, why
	for _, r := range e.requests {
		s.effect(Effect{Kind: Lose, ID: r.id, Reason: why})
		if e.owner == "" {
			s.requests.Remove(r.id)
		}
	}
}

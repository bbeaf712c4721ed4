package lockqueue

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// apply makes an entry for the request and asks for its node. A request of an owner that has other
// requests may need neither: see reenter.
func (ev Acquire) apply(s *State) {
	if s.closed != 0 {
		s.refuse(ev.ID, s.closed)
		return
	}
	s.contention.wanted = s.contention.wanted || ev.NotifyContended
	e := newEntry(entry{contender: contender{kind: ev.Kind}, owner: ev.Owner, data: string(ev.Data),
		atomicCreate: ev.AtomicCreate, revocable: ev.Revocable})
	if ev.Owner != "" && s.reenter(e, ev) {
		return
	}
	if ev.Try && e.downgradeOf == nil && s.blockedLocally(ev.Kind) {
		s.refuse(ev.ID, requests.NotAcquired)
		return
	}
	e.requests = append(e.buf[:0], request{id: ev.ID, try: ev.Try, notifyContended: ev.NotifyContended})
	s.remember(ev.ID, e)
	if ev.Owner != "" {
		put(&s.owners, ownerOf(e), e)
	}
	s.requestCreate(e)
}

// requestCreate has the entry's node created, or keeps the entry until there is a session.
func (s *State) requestCreate(e *entry) {
	if e.stage != unsent { // it queues again: unanswered may still hold it for its former CreateNode
		s.unanswered = slices.DeleteFunc(s.unanswered, func(o *entry) bool { return o == e })
	}
	if e.atomic() && e.serial != 0 {
		e.stage = leaving // an atomic create is not repeated (see Acquire.AtomicCreate); no node is left to delete
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
	e.createdAt, e.provenAt, e.hiddenAt, e.revoked, e.inDirectory = 0, 0, 0, false, false
	e.listAfter = e.downgradeOf == nil && !s.behindOwn()
	after := s.after(e)
	put(&s.entries, e.serial, e)
	s.unanswered = append(s.unanswered, e)
	create := Effect{Kind: CreateNode, Serial: e.serial, Node: s.incarnation.Prefix(e.serial, s.rule.Markers[e.kind]),
		Data: []byte(e.data), Owner: e.owner, ListAfter: e.listAfter, After: after, DirectoryExists: s.listsOwn()}
	if e.downgradeOf != nil {
		e.downgradeOf.downgrades++
		create.Node, create.Beside = fmt.Sprintf("%s%010d", create.Node, e.downgradeOf.seq), e.downgradeOf.name
	}
	if e.atomic() {
		create.ID = e.requests[0].id
	}
	s.effect(create)
}

// apply puts the entry in its place, takes in the names in the directory, which show the contenders
// ahead, and grants what may hold. The other cases: the node is in a former directory, is unwanted by
// now, is a downgrade (origin), is near the end of the numbers, has a name
// that the rule does not parse, or comes after a list that does not show it (late).
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
	// A list may have shown this node already. If the creation was repeated, that may have been a node
	// of the same name in a former directory: only a read of the directory behind this creation, or
	// SameDirectory, rules that out.
	seen := e.listed && e.name == ev.Node && (ev.SameDirectory || ev.Directory != 0)
	s.removeFromList(&e.contender) // its place may belong to a node that is gone, if the creation was repeated
	seq, _, ok := s.rule.Parse(ev.Node)
	e.name, e.seq, e.czxid, e.step, e.createdAt = ev.Node, seq, ev.Czxid, ev.Step, s.clock
	e.provenAt = max(e.provenAt, e.sentAt)
	if !seen {
		e.hiddenAt = s.departuresListedAt // the last list that shows departures did not show this node: see merge, hidden
	}
	// SameDirectory means s.directory: if that were a later directory than the node's, its czxid would be
	// greater than ev.Czxid, and createdInOldDirectory would have had e above.
	e.inDirectory = ev.SameDirectory || ev.Directory != 0 && ev.Directory == s.directory
	e.generation = ev.Generation
	origin := s.detach(e) // the entry that a downgrade was made beside; nil for others
	if queue.NearEnd(seq) {
		s.switchToCzxids()
	}
	if origin != nil {
		e.generation, e.czxid, e.step = origin.generation, origin.czxid, origin.step // it goes on with the token that was granted
	}
	e.rank = s.rank(e)
	late := origin == nil && !seen && e.rank.major <= s.completeThrough
	if e.inDirectory && s.follows(e.seq) {
		s.completeThrough++ // nothing came in between, whatever becomes of this node
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
		s.requeue(e) // completeThrough went past its number without it: others may have passed it
	case late: // a list with czxids shows whether another contender has passed it
		s.startWaiting(e)
	default:
		s.addToList(&e.contender)
		s.startWaiting(e)
		s.extendComplete()
	}
	if origin != nil && len(origin.requests) == 0 && origin.stage == held {
		s.leave(origin) // it was released meanwhile, and stayed for its downgrades only
	}
	if hasChildren {
		s.merge(ev.Children, nil, sentAt) // takes in the other contenders, and notes which have gone
		if e.listed && e.answered() && !slices.Contains(ev.Children, e.name) {
			s.ownNodeDeleted(e) // between its creation and the read
		}
	}
	s.grantEligible()
}

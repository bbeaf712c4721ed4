package lockqueue

import (
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
	e := newEntry(ev.Kind)
	e.owner, e.data, e.atomic, e.revocable = ev.Owner, string(ev.Data), ev.Atomic, ev.Revocable
	if ev.Owner != "" && s.reenter(e, ev) {
		return
	}
	if ev.Try && e.downgrade.of == nil && s.blockedLocally(ev.Kind) {
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

// requestCreate has the entry's node created. It keeps the entry while there is no session, or
// while it waits outside (numbers.go).
func (s *State) requestCreate(e *entry) {
	e.link.Leave()         // of unsent, if it was there
	if e.stage != unsent { // it queues again
		s.noteRepeat(e)
	}
	if e.atomic && e.serial != 0 {
		e.stage = leaving // an atomic create is not repeated (see Acquire); no node is left to delete
		s.refuseAll(e, s.goneReason())
		return
	}
	if s.session == Lost || s.waitsOutside(e) {
		e.stage = unsent
		s.unsent.Append(e, &e.link)
		s.listOutside()
		return
	}
	s.createNode(e)
}

// createNode asks for the entry's node.
func (s *State) createNode(e *entry) {
	s.lastSerial++
	e.stage, e.name, e.serial, e.sentAt = creating, "", s.lastSerial, s.clock
	e.createdAt, e.proof, e.revoked, e.inDirectory = 0, proof{}, false, false
	// The bridge reads the directory behind the create if contenders may be ahead that this process has not seen.
	e.listAfter = e.downgrade.of == nil && !s.behindOwn() && s.listsDue < maxListsDue && s.mayHaveMissed()
	s.entries.put(e)
	s.awaitAnswer(e)
	create := s.ask(requests.CreateNode, e.serial)
	create.Node, create.Data, create.Owner = s.incarnation.prefix(e.serial, s.rule.Markers[e.kind]), []byte(e.data), e.owner
	create.ListAfter, create.DirectoryExists, create.DirectorySeen = e.listAfter, s.listsOwn(), s.directoryCzxid != 0
	if e.downgrade.of != nil {
		e.downgrade.of.downgrade.pending++
		create.Node, create.Guard = queue.WithSeq(create.Node, e.downgrade.of.seq), e.downgrade.of.name
	} else if s.lastDeleted != nil {
		// If one transaction deletes that node and makes this one, both are in one directory. The
		// bridge then reads nothing behind the creation, not even with ListAfter.
		create.After = s.lastDeleted.name
	}
	if e.atomic {
		create.ID = e.requests[0].id
	}
}

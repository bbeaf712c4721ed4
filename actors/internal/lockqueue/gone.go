package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// Nodes of this process that it has not deleted, and that are gone.

// ownNodeDeleted goes on after another client has deleted a node of this process. That client may
// have deleted other nodes of this process, too, and contenders of other processes may have passed
// them: the proofs of all nodes of this process must be newer than this.
func (s *State) ownNodeDeleted(e *entry) {
	s.allDoubtedAt, s.othersCame = s.clock, manyCreates
	s.goOnWithoutNode(e)
}

// goOnWithoutNode is ownNodeDeleted without a doubt of the other nodes. It goes on without the
// node: a holder loses its grant, and waiting requests get a new node at the end of the queue.
func (s *State) goOnWithoutNode(e *entry) {
	if !e.answered() { // its CreateNode may yet be repeated, and is answered in any case
		s.removeFromList(&e.contender)
		e.name = ""
		return
	}
	if s.delay.isOf(e) {
		s.delay = nil
	}
	s.entries.remove(e.serial)
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	switch {
	case e.stage == held:
		s.lose(e, requests.NodeDeleted)
	case len(e.requests) > 0:
		s.requestCreate(e) // at the end of the queue
	}
}

// goneReason returns why a node is gone that this process has not deleted.
func (s *State) goneReason() requests.Reason {
	if s.session == Lost {
		return requests.SessionLost
	}
	return requests.NodeDeleted
}

// requeue has a contender queue again, by a new node. The node that it has is deleted; it may exist
// or not, and others may have passed it.
func (s *State) requeue(e *entry) {
	s.stopWaiting(e)
	s.removeFromList(&e.contender)
	former := newEntry(e.kind)
	former.name, former.seq, former.serial = e.name, e.seq, e.serial
	s.entries.put(former)
	s.deleteNode(former)
	s.requestCreate(e)
}

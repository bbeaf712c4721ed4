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

// enterDirectory notes the czxid of the directory that an answer is about, which is 0 if the answer does
// not say. It returns false for a former directory. What was known of a former directory does not hold
// for the next, and a node that was made before the next directory is not in it.
func (s *State) enterDirectory(czxid int64) bool {
	if czxid <= s.directoryCzxid {
		return czxid == s.directoryCzxid
	}
	s.directoryCzxid, s.lastDeleted, s.numbers = czxid, nil, newNumbers()
	for _, e := range s.forget() {
		switch {
		case !e.answered():
			e.name = "" // a list showed the node before its Created: it was in the deleted directory
		case e.token.Czxid < czxid:
			s.ownNodeDeleted(e)
		default: // made since, in this directory or one that comes after it
			e.inDirectory = false
			s.addAnew(e)
		}
	}
	return true
}

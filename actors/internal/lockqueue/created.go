package lockqueue

import "slices"

// The answer to a CreateNode.

// apply notes the node and settles what becomes of its entry. Then it takes in the names in the
// directory, which show the contenders ahead.
func (ev Created) apply(s *State) {
	e := s.entries.at(ev.Serial)
	if e == nil || e.answered() {
		return
	}
	s.enterDirectory(ev.DirectoryCzxid)
	sentAt := e.sentAt // of this CreateNode: settle may ask for another
	// hasChildren reports whether ev.Children is the whole directory: the effect had ListAfter and the
	// directory was read (an empty one has lost the new node, too), or the bridge had to look for the node.
	hasChildren := ev.DirectoryCzxid != 0 && e.listAfter || len(ev.Children) > 0
	unwanted := e.stage == abandoned
	s.markAnswered(e)
	if ev.Token.Czxid < s.directoryCzxid { // it went with a former directory: no reason to doubt nodes in the present one
		s.goOnWithoutNode(e)
		return
	}
	alreadyListed := s.noteNode(e, ev)
	s.settle(e, alreadyListed, unwanted)
	if hasChildren && !(unwanted && s.listsDue > 0) { // a later list says more, and there may be many of these
		s.merge(ev.Children, sentAt)
		if e.listed && e.answered() && !slices.Contains(ev.Children, e.name) {
			s.ownNodeDeleted(e) // between its creation and the read
		}
	}
}

// noteNode notes what a Created says of the entry's node, and reports whether an earlier list has
// shown the node already. (The names that come with this Created are merged later.) It takes the
// entry out of s.contenders, until settle adds it.
func (s *State) noteNode(e *entry, ev Created) (alreadyListed bool) {
	// With SameDirectory, or after a read of the directory, the node is known to be in the present directory.
	// (apply has returned if that was created after the node.)
	e.inDirectory = ev.SameDirectory || ev.DirectoryCzxid != 0
	// A list that shows the node before its Created sets e.name (recogniseOwn). All that is listed
	// is of the present directory, where no name comes twice. So once the node is known to be there, an
	// equal name proves that a list has shown it. A node not known to be there may be another one than
	// the listed: the bridge repeats a create whose answer was lost, and in the next directory, where
	// the numbers begin anew, it may get the same name.
	alreadyListed = e.listed && e.name == ev.Node && e.inDirectory
	s.removeFromList(&e.contender) // a repeated creation may have given the node another place
	if !alreadyListed {
		e.hiddenAt = s.departuresListedAt
	}
	e.name, e.token = ev.Node, ev.Token
	e.createdAt, e.provenAt, e.recent = s.clock, max(e.provenAt, e.sentAt), ev.Recent
	return alreadyListed
}

// settle decides what becomes of an entry with a new node. Mostly it queues.
func (s *State) settle(e *entry, alreadyListed, unwanted bool) {
	seq, _, ok := s.parse(e.name)
	if !ok { // the number is beyond 32 bits, as no known ZooKeeper makes it; the rest of the name is known to be right
		seq = lastNumber
	}
	e.seq = seq
	s.numbers.note(seq)
	late := !alreadyListed && seq <= s.completeThrough // completeThrough went past its number without it
	s.noteNumber(e)
	origin := s.detach(e) // the entry that a downgrade was made beside; nil for others
	switch {
	case unwanted:
		s.deleteNode(e)
	case origin != nil:
		e.token = origin.token // it goes on with the token that was granted
		s.addToList(e)
		s.grant(e)
	case late || seq >= lastNumber:
		s.requeue(e) // others may have passed it, or have the same number
	default:
		s.addToList(e)
		s.startWaiting(e)
		s.extendComplete()
	}
	s.leaveIfReleased(origin)
}

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// Contenders that wait for those of other processes.

// awaitBlockers asks for what reports the departure of the blockers of e, and returns false. It
// returns true if it has refused tries instead: another contender may be granted now.
func (s *State) awaitBlockers(e *entry) (refused bool) {
	blockers := s.nearestBlockers(e)
	_, foreign, lastSeen := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	switch {
	case s.waitingTries > 0 && s.refuseTries(e, lastSeen):
		return true
	case foreign && s.listing.serial != 0: // the list is about to show whether they are gone
	case foreign:
		s.watchBlockers(e, blockers)
	case s.departedSince(e): // blockers of this process must leave first: ask for the proof now, to have it by then
		s.prove(e)
	}
	return false
}

// watchBlockers asks for watches on e's node and on all blockers, or for a list.
//
// If a single departure is not enough for e, one blocker is there beside those that keep e waiting.
// After its departure a list shows the others that are left, while they still hold or wait. The
// next departure then lets e hold: it doubts all proofs of e's node but an active watch.
func (s *State) watchBlockers(e *entry, blockers []*contender) {
	unwatched, _, _ := s.unwatched(blockers)
	if len(blockers) > s.rule.Permits && len(unwatched) > 0 && s.departedSince(e) {
		s.requestList() // others may have gone with the one that departed: one list shows all that are left, and proves e
		return
	}
	if s.watches[e.name] == nil {
		unwatched = append(unwatched, e.name)
	}
	if len(unwatched) > 0 {
		s.requestWatch(unwatched, e.token.Czxid)
	}
}

// departedSince reports whether a contender may have left since the last proof of e's node. (The
// age of the proof is left to the Tick.)
func (s *State) departedSince(e *entry) bool { return e.provenAt < s.lastDoubt(e) }

// requestWatch asks for watches of nodes. If one of them is of this process it asks for their data,
// too: another client asks to release by writing to the node. No node is read if no event can be
// missed without that: if none of them was written after the zxid since, and this process may read
// them all.
func (s *State) requestWatch(nodes []string, since int64) {
	s.lastSerial++
	ours := false
	for _, name := range nodes {
		put(&s.watches, name, &watch{serial: s.lastSerial})
		c := s.find(name)
		ours = ours || c != nil && c.entry != nil
		if !s.readable[creatorOf(name)] {
			since = 0
		}
	}
	put(&s.asked, s.lastSerial, nodes)
	f := s.ask(requests.WatchNodes, s.lastSerial)
	f.Nodes, f.WithData, f.Since = nodes, ours, since
}

// apply removes from the list a contender whose node was deleted, or notes that the changed node
// existed.
func (ev Wake) apply(s *State) {
	if ev.Epoch != s.epoch {
		return
	}
	delete(s.watches, ev.Node)
	if ev.Node == "" { // a child of the directory came or went
		s.contention.set, s.contention.later = false, len(s.contenders) > maxAtOnce
	} else if ev.Deleted {
		s.nodeDeleted(ev.Node)
	} else if c := s.find(ev.Node); c != nil {
		c.provenAt = s.clock
		s.requestWatch([]string{c.name}, 0) // the change has ended the watch
	}
}

// nodeDeleted notes that a node of any process is gone.
func (s *State) nodeDeleted(name string) {
	delete(s.watches, name)
	switch c := s.find(name); {
	case c == nil:
	case c.entry != nil:
		s.ownNodeDeleted(c.entry)
	default:
		s.removeFromList(c)
		s.allDoubtedAt = s.clock
		if kinds := downgradesFrom(s.rule, c.kind); kinds != 0 {
			s.unseenDowngrades, s.unseenSince = s.unseenDowngrades|kinds, s.clock
		}
	}
}

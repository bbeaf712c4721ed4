package lockqueue

import "slices"

// Contenders that wait for those of other processes.

// awaitBlockers asks for what reports the departure of blockers, and returns true. It returns false if it
// has refused tries: others may be granted now. blockers are indexes in the list, nearest first, at most
// one more than Permits. If there is one more, a single departure is not enough for e. e is crowded if,
// besides, all of them are of other processes.
func (s *State) awaitBlockers(e *entry, blockers []int) (blocked bool) {
	more := len(blockers) > s.rule.Permits
	crowded := more && !slices.ContainsFunc(blockers, func(i int) bool { return s.contenders[i].entry != nil })
	ask, others, seenSince := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	if s.waitingTries > 0 && s.refuseTries(e, seenSince) {
		return false
	}
	doubted := e.provenAt < s.lastDoubt(e) // the age of the proof is left to the Tick
	switch {
	case !others && doubted: // now, so that e need not wait for the proof when its turn comes
		s.prove(e)
	case !others || s.listing.serial != 0: // a departure or the list will call grantEligible
	case len(ask) > 0 && more && doubted:
		// A contender has gone since the last proof of e, and several are ahead still: a list shows
		// how many have gone with it.
		s.requestList()
	case !crowded && s.watches[e.name] == nil:
		// A contender that may hold as soon as one of another process has left must notice when its own
		// node goes. For a crowded one there is time: awaitBlockers is called again when the nearest one
		// ahead goes, and mostly asks for a list then, which proves e's node.
		s.requestWatch(append(ask, e.name))
	case len(ask) > 0:
		s.requestWatch(ask)
	}
	return true
}

// requestWatch asks for watches of nodes. If one of them is of this process it asks for their data,
// too: another client asks to release by writing to the node.
func (s *State) requestWatch(nodes []string) {
	s.lastSerial++
	ours := false
	for _, name := range nodes {
		put(&s.watches, name, &watch{serial: s.lastSerial})
		c := s.find(name)
		ours = ours || c != nil && c.entry != nil
	}
	s.effect(Effect{Kind: WatchNodes, Serial: s.lastSerial, Nodes: nodes, WithData: ours})
}

// apply removes a contender whose node is gone from the list, and grants what may hold now.
func (ev Wake) apply(s *State) {
	if ev.Epoch != s.epoch {
		return
	}
	delete(s.watches, ev.Node)
	if ev.Node == "" { // a child of the directory came or went
		s.contention.set = false
	}
	if ev.Deleted {
		s.nodeDeleted(ev.Node)
	} else if c := s.find(ev.Node); c != nil {
		c.provenAt = s.clock
		if c.entry != nil && c.entry.stage >= makingMarker {
			s.requestWatch([]string{c.name}) // a holder's watch is set again here, others by grantEligible while they matter
		}
	}
	s.grantEligible()
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

package lockqueue

import "slices"

// Contenders that wait for those of other processes.

// awaitBlockers asks for what reports the departure of the blockers of e, and returns false. It returns
// true if it has refused tries instead: another contender may be granted now. blockers are indexes in the list,
// nearest first: Permits of them, or one more if a single departure is not enough for e.
func (s *State) awaitBlockers(e *entry, blockers []int) (refused bool) {
	more := len(blockers) > s.rule.Permits
	// A contender is crowded if a single departure is not enough for it, and all blockers are of other processes.
	crowded := more && !slices.ContainsFunc(blockers, func(i int) bool { return s.contenders[i].entry != nil })
	ask, foreign, lastSeen := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	if s.waitingTries > 0 && s.refuseTries(e, lastSeen) {
		return true
	}
	doubted := e.provenAt < s.lastDoubt(e) // the age of the proof is left to the Tick
	switch {
	case !foreign && doubted: // asked for now, the proof is there when the turn of e comes
		s.prove(e)
	case !foreign || s.listing.serial != 0: // a departure or the list will call grantEligible
	case len(ask) > 0 && more && doubted:
		// A contender has gone since the last proof of e, and several are ahead still: a list shows
		// how many have gone with it.
		s.requestList()
	case !crowded && s.watches[e.name] == nil:
		// A contender that may hold as soon as one of another process has left must notice when its own
		// node goes. For a crowded one there is time: the departure of a blocker is a doubt, after which
		// awaitBlockers mostly asks for a list, which proves e's node.
		s.requestWatch(append(ask, e.name))
	case len(ask) > 0:
		s.requestWatch(ask)
	}
	return false
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

// apply removes from the list a contender whose node was deleted, or notes that the changed node existed. It
// grants what may hold now.
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

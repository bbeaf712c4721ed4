package lockqueue

import "slices"

// Contenders that wait for those of other processes.

// awaitBlockers has the departure of blockers noticed and returns true. It returns false if it had
// to refuse tries instead. blockers are indexes in the list, nearest first. With more of them than
// Permits, e cannot be next; e is crowded if, besides, all of them are of other processes.
func (s *State) awaitBlockers(e *entry, blockers []int) (blocked bool) {
	more := len(blockers) > s.rule.Permits
	crowded := more && !slices.ContainsFunc(blockers, func(i int) bool { return s.contenders[i].entry != nil })
	ask, others, seenSince := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	if s.waitingTries > 0 && s.refuseTries(e, seenSince) {
		return false
	}
	if !others {
		if e.provenAt < max(s.doubtedAt, e.doubtedAt) { // e need not wait for the proof when its turn comes
			s.prove(e)
		}
		return true
	}
	switch {
	case s.listing.serial != 0:
		return true
	case len(ask) > 0 && more && e.provenAt < max(s.doubtedAt, e.doubtedAt):
		// The contender that e waited for is gone, and several were ahead: a list shows how many
		// have gone with it.
		s.requestList()
		return true
	case !crowded && s.watches[e.name] == nil:
		// A contender that may be next after one of another process must notice when its own node
		// goes. A crowded one is not next: it comes here again when the nearest one ahead goes,
		// mostly with a list that shows its node.
		ask = append(ask, e.name)
	}
	if len(ask) > 0 {
		s.requestWatch(ask)
	}
	return true
}

// requestWatch asks for watches of nodes. It asks for their data, too, if one of them is of this
// process: by these another client asks to release.
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

// apply takes a contender that is gone out of the list, and grants the one that may hold now.
func (ev Wake) apply(s *State) {
	if ev.Epoch != s.epoch {
		return
	}
	delete(s.watches, ev.Node)
	if ev.Node == "" {
		s.contention.set = false
	}
	if ev.Deleted {
		s.nodeDeleted(ev.Node)
	} else if c := s.find(ev.Node); c != nil {
		c.provenAt = s.clock
		if c.entry != nil && c.entry.stage >= makingMarker {
			s.requestWatch([]string{c.name}) // other nodes are watched again as long as they matter
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
		s.doubtedAt = s.clock
		if kinds := downgradesFrom(s.rule, c.kind); kinds != 0 {
			s.unseenDowngrades, s.unseenSince = s.unseenDowngrades|kinds, s.clock
		}
	}
}

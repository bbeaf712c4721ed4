package lockqueue

import (
	"math"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Which nodes of this process are proven to exist.

// watched reports whether e's node has an active watch, which reports a deletion before this
// process reads anything later.
func (s *State) watched(e *entry) bool {
	w := s.watches[e.name]
	return w != nil && w.active
}

// proven reports whether e's own node is known to exist, by a proof that is recent and newer than
// the last departure heard of. An older proof does not suffice: another contender may hold already,
// because the one ahead of e has left and e's own node was deleted.
func (s *State) proven(e *entry) bool {
	return s.watched(e) || e.provenAt >= s.oldestProof(e)
}

// oldestProof returns the clock before which a proof of e's node does not count.
// That of a recent Created is young enough until the next Tick.
func (s *State) oldestProof(e *entry) uint64 {
	if e.recent && e.createdAt > s.tickedAt {
		return s.lastDoubt(e)
	}
	return max(s.lastDoubt(e), s.staleBefore)
}

// lastDoubt returns the latest doubt of e's node, apart from the age of its proof.
func (s *State) lastDoubt(e *entry) uint64 { return max(s.allDoubtedAt, e.hiddenAt) }

// departedSince reports whether a contender may have left since the last proof of e's node. (The
// age of the proof is left to the Tick.)
func (s *State) departedSince(e *entry) bool { return e.provenAt < s.lastDoubt(e) }

// prove asks for a proof that e's node exists. A list proves the nodes of all that wait.
func (s *State) prove(e *entry) {
	switch {
	case s.proven(e) || s.watches[e.name] != nil:
	case s.listing.serial != 0:
		s.listing.again = s.listing.again || s.listing.askedAt < s.oldestProof(e)
	case s.othersWait(e):
		s.requestList()
	default:
		s.requestWatch([]string{e.name}, 0)
	}
}

// othersWait reports whether another contender of this process waits.
func (s *State) othersWait(e *entry) bool {
	n := 0
	for _, line := range s.waiting {
		n += len(line)
	}
	return n > 1 || n == 1 && e.stage != queued
}

// unwatched returns the names of the blockers of other processes that have no watch, reports
// whether there are blockers of other processes, and returns the clock at which all of those were
// last known to exist. An active watch shows that its node exists now: if all have one, lastSeen is
// math.MaxUint64.
func (s *State) unwatched(blockers []*contender) (names []string, foreign bool, lastSeen uint64) {
	lastSeen = math.MaxUint64
	for _, c := range blockers {
		if c.entry != nil {
			continue // Step looks again when it leaves
		}
		foreign = true
		w := s.watches[c.name]
		if w == nil {
			names = append(names, c.name)
		}
		if w == nil || !w.active {
			lastSeen = min(lastSeen, c.provenAt)
		}
	}
	return names, foreign, lastSeen
}

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

// watchRevocable has the node of a revocable holder watched.
func (s *State) watchRevocable(e *entry) {
	if e.revocable && s.watches[e.name] == nil {
		s.requestWatch([]string{e.name}, 0)
	}
}

// noteReadable notes that this process may read the nodes of a name's creator.
func (s *State) noteReadable(name string) {
	creator := creatorOf(name)
	if creator == (Incarnation{}) || s.readable[creator] {
		return
	}
	if len(s.readable) == maxReadable {
		clear(s.readable)
	}
	put(&s.readable, creator, true)
}

// maxReadable bounds what a State keeps of creators, of which there may be any number over time.
const maxReadable = 256

// takeWatched returns the names of the nodes that the WatchNodes of a serial watches, which is
// answered, sorted.
func (s *State) takeWatched(serial uint64) (names []string) {
	for _, name := range s.asked[serial] {
		if w := s.watches[name]; w != nil && w.serial == serial {
			names = append(names, name)
		}
	}
	delete(s.asked, serial)
	slices.Sort(names)
	return names
}

// unwatch forgets the watches of a serial, and reports whether there were any.
func (s *State) unwatch(serial uint64) bool {
	names := s.takeWatched(serial)
	for _, name := range names {
		delete(s.watches, name)
	}
	return len(names) > 0
}

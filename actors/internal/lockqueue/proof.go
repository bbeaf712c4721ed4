package lockqueue

import (
	"math"
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// Which nodes of this process are proven to exist.

// proofs holds what State.proven asks. Each doubt is a clock: a proof of an earlier clock does not
// count.
//
//	proven = an active watch, or provenAt >= allDoubtedAt, hiddenAt and, unless the Created was recent, staleBefore
//
// provenAt, of the contender, is the clock of the request whose answer has shown the node. With a
// watch it is the clock of the Watched or Wake itself: had the node gone before anything that this
// process has heard of, the watch would have reported that first. allDoubtedAt doubts all own
// nodes, and hiddenAt, of the contender, that one node. staleBefore is the age limit of all proofs.
// The answer to a CreateNode that has waited in the bridge is younger than provenAt says: see
// oldestProof.
type proofs struct {
	// allDoubtedAt is the clock at which a contender of another process was last heard to have
	// left, a node of this process to be missing, or the connection to be back. For a departure
	// that a list shows it is the clock of the list's request, so that the list proves the nodes
	// that it shows.
	allDoubtedAt uint64
	// staleBefore is the Tick before the last one, tickedAt the last one. staleBefore <= tickedAt.
	staleBefore, tickedAt uint64
	// departuresListedAt is the clock at which a list last showed a departure: it lacked a
	// contender known before, or skipped a number. A Created copies that clock to hiddenAt if no
	// list has shown its node.
	departuresListedAt uint64
	// watches holds the watches on nodes by name, and asked the names of each WatchNodes that is
	// not answered.
	watches map[string]*watch
	asked   map[uint64][]string
	// readable has the creators of nodes that this process has read: it may read their other nodes,
	// too.
	readable map[Incarnation]bool
	// watchAfterFailure is the serial of the WatchNodes of the holders' nodes that readFailed has
	// asked for. If that fails, too, readFailed does not repeat it.
	watchAfterFailure uint64
}

// watch is a watch on a node, from its WatchNodes to the Wake. It is active from the answer until
// the connection is gone. While it is active it reports the next change of the node.
type watch struct {
	serial uint64
	active bool
}

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

func (ev Watched) apply(s *State) {
	if s.awaitsMarker(ev.Serial) {
		s.heldMarkerRead(ev)
	}
	gone := slices.Sorted(slices.Values(ev.Gone))
	for _, name := range s.takeWatched(ev.Serial) {
		s.watches[name].active = s.session == Connected // a watch reports nothing without a connection
		if _, is := slices.BinarySearch(gone, name); is {
			s.nodeDeleted(name)
			continue
		}
		s.noteReadable(name)
		if c := s.find(name); c != nil {
			// If the node goes after its read, this process has the Wake before it hears of
			// anything later. Each later departure doubts the proof, and so does resume.
			c.provenAt = s.clock
			if c.entry != nil && string(ev.Data[name]) == queue.RevokeData {
				s.revoke(c.entry)
			}
		}
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

func (Tick) apply(s *State) {
	s.staleBefore, s.tickedAt = s.tickedAt, s.clock
	s.contention.later = false
	if s.session != Connected {
		return
	}
	s.tickOutside()
	var ask []string
	askIfStale := func(c *contender) {
		if c.provenAt < s.staleBefore && s.watches[c.name] == nil {
			ask = append(ask, c.name)
		}
	}
	for _, c := range s.nextToHold() {
		askIfStale(c)
	}
	for _, c := range s.holders {
		askIfStale(c)
	}
	if len(ask) > 0 {
		s.requestWatch(ask, 0)
	}
}

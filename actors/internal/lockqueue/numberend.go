package lockqueue

import (
	"math"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The end of a directory's numbers. Near it new requests wait outside the queue, as unsent entries,
// until the contenders have left. Then the directory is deleted, and the numbers begin anew.

// numbers says how near the end of its numbers a directory is, and how long new requests have
// waited outside for that.
type numbers struct {
	// highest is the highest number that this process has seen in the directory.
	highest int64
	// enterUntil is the number from which new requests wait outside again, after they have waited
	// in vain. Beyond lastEntry it does not count.
	enterUntil int64
	// fewest is the least number of children that a list has shown since new requests wait outside.
	// ticks counts the Ticks since that was less.
	fewest, ticks int32
	// deletion is the serial of the DeleteDirectory that is not answered yet, or 0.
	deletion uint64
}

const (
	// lastNumber is the last number. Several nodes may have it, and no contender holds by it.
	lastNumber = math.MaxInt32
	// lastEntry is the number from which this process creates nothing before the directory is
	// another one. The later ones are a reserve for creates that are under way, and for processes
	// that have not seen any yet.
	lastEntry = lastNumber - 1<<16
	// entriesBetween is how many numbers are used after new requests have waited outside in vain,
	// before they wait again.
	entriesBetween = 1 << 16
	// patience is for how many Ticks new requests wait outside while no child leaves.
	patience = 5
)

func newNumbers() numbers { return numbers{fewest: math.MaxInt32} }

func (n *numbers) note(seq int64) { n.highest = max(n.highest, seq) }

// ending reports whether new requests wait outside.
func (n *numbers) ending() bool {
	return queue.NearEnd(n.highest) && n.highest >= min(n.enterUntil, lastEntry)
}

// waitsOutside reports whether an entry waits outside. A downgrade does not: it takes the number of
// its owner's node, and that owner may not leave before.
func (s *State) waitsOutside(e *entry) bool { return s.numbers.ending() && e.downgrade.of == nil }

// anyOutside reports whether entries wait outside.
func (s *State) anyOutside() bool { return s.session != Lost && len(s.unsent) > int(s.unsentLeft) }

// admit creates the nodes of the entries that have waited for a session, or outside, once they need
// not wait any longer. Step calls it after every event.
func (s *State) admit() {
	if s.anyOutside() && !s.numbers.ending() {
		s.createUnsent()
	}
}

// listOutside lists the directory for the entries that wait outside.
func (s *State) listOutside() {
	if s.anyOutside() && s.listing.serial == 0 && s.numbers.deletion == 0 {
		s.requestList()
	}
}

// listedOutside goes on with the entries that wait outside after a list of the directory, whose
// czxid is 0 if it is missing.
func (s *State) listedOutside(directory int64, children int) {
	n := &s.numbers
	switch {
	case directory == 0:
		*n = newNumbers()
		return
	case !s.anyOutside() || !n.ending() || n.deletion != 0:
		return
	case int32(children) < n.fewest:
		n.fewest, n.ticks = int32(children), 0
	}
	if children == 0 && !s.keepsDirectory {
		s.lastSerial++
		n.deletion = s.lastSerial
		s.ask(requests.DeleteDirectory, n.deletion)
		return
	}
	for _, e := range slices.Clone(s.unsent) { // a try does not wait for contenders that block it
		if !hasLeft(e) && s.blockersAhead(e.kind, math.MaxInt64) >= s.rule.Permits && s.refuseTriesOf(e) && len(e.requests) == 0 {
			s.leave(e)
		}
	}
	s.endVainWait()
}

// KeepDirectory has the directory never deleted: it is not the lock's own.
func (s *State) KeepDirectory() { s.keepsDirectory = true }

// directoryDeleted takes the answer to DeleteDirectory. If the directory is not deleted, a Tick
// lists it.
func (s *State) directoryDeleted(done bool) {
	s.numbers.deletion = 0
	if done {
		s.numbers = newNumbers()
	} else {
		s.endVainWait()
	}
}

// endVainWait has the entries go on that have waited outside in vain: they use up the numbers, and
// are refused once few are left.
func (s *State) endVainWait() {
	n := &s.numbers
	switch {
	case n.ticks < patience:
	case n.highest < lastEntry:
		n.enterUntil, n.fewest, n.ticks = n.highest+entriesBetween, math.MaxInt32, 0
	default:
		s.refuseOutside(requests.SequenceExhausted)
	}
}

// refuseOutside refuses the requests that wait outside.
func (s *State) refuseOutside(why requests.Reason) {
	for _, e := range slices.Clone(s.unsent) {
		if !hasLeft(e) {
			s.refuseAll(e, why)
		}
	}
}

// tickOutside lists the directory at a Tick while requests wait outside.
func (s *State) tickOutside() {
	if s.anyOutside() {
		s.numbers.ticks++
		s.listOutside()
	}
}

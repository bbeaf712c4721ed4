package lockqueue

import (
	"math"

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

package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The questions of the State that are not answered yet, and what the answers prove.

// proofs holds what State.proven asks. A contender may only hold if its node was seen after the last
// departure that this process has heard of: without it another contender may hold already. Each doubt
// is a clock: a proof of an earlier clock does not count.
//
//	proven = an active watch, or provenAt >= allDoubtedAt, hiddenAt and staleBefore (but for a recent Created)
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

// listing is the ListDirectory that is not answered yet.
type listing struct {
	serial  uint64 // 0 if there is none
	askedAt uint64 // clock at which it was asked for
	again   bool   // the answer may be too old: ask once more then; only if serial is not 0
	former  uint8  // how many lists in a row were of a former directory, at most requests.MaxRepeats: the server contradicts itself
	later   bool   // ask at the next Tick, because of that; only if serial is 0
}

// delay is what is under way about the held marker: one effect.
type delay struct {
	entry          *entry              // the entry that is to hold (makingMarker), or leaves
	serial         uint64              // of the effect that is to be answered
	askedAt        uint64              // clock of that effect
	kind           requests.EffectKind // of that effect
	outcomeUnknown bool                // an answer was lost: a held marker that exists may be the entry's own
	elapsed        bool                // the delay has been waited for
}

func (d *delay) isOf(e *entry) bool { return d != nil && d.entry == e }

// contentionWatch is the watch on the directory that notices contenders of other processes. It must
// not be left behind, and the bridge does not take it back: it ends with the next change in the
// directory, which is the deletion of the holder's own node at the latest. If another client
// deletes that node before the list sets the watch, the watch stays until another contender comes,
// or until ZooKeeper removes the empty directory. A client that may not read the directory at that
// moment hears nothing of the change that has ended its watch: the deletion of an own node shows
// that it has ended.
type contentionWatch struct {
	wanted      bool     // a request with NotifyContended has ever been made
	set         bool     // the watch is set, or being set, and no Wake has come of it
	later       bool     // the next Tick sets the watch, which has ended among many contenders or was refused; only if it is not set
	requested   bool     // the ListDirectory in flight sets it
	deleteAfter []*entry // entries whose nodes are deleted once that is answered, and not before
}

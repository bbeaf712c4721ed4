package lockqueue

import (
	"sync"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// State is what one process knows of one lock: its own contenders, and those of other processes
// that matter to them. It is made by [New] and used by one goroutine at a time.
type State struct {
	rule        *queue.Rule // which many States share
	incarnation Incarnation

	clock      uint64 // number of events
	lastSerial uint64 // last serial that an effect was given
	// epoch is the number of the session, and firstSerial the first serial of its effects. A node
	// of this incarnation with an earlier serial is of a former session, and counts as another
	// process's.
	epoch, firstSerial uint64
	session            SessionState
	closed             requests.Reason // not 0 after Close
	kindsDiffer        bool            // of rule: see ofKind
	keepsDirectory     bool            // see KeepDirectory
	clients            clients         // those that had contenders of other processes here, at any time

	directoryView                 // contenders, completeThrough, directory and others
	ownEntries                    // entries, unanswered, waiting, requests and others
	proofs                        // allDoubtedAt, staleBefore, watches and others
	listing       listing         // the list of the directory that is not answered yet
	delay         *delay          // what is under way about the held marker; nil if nothing is
	contention    contentionWatch // the watch for Acquire.NotifyContended

	// reported are the names that ReportUnknownChild has reported, at most maxReported.
	reported map[string]bool

	*scratch // nil between Performed and the next use
}

// directoryView is what this process knows of the contenders in the lock's directory. Each
// contender up to completeThrough is in the list, or its node is gone for good: the numbers of one
// directory only grow, so a new node has a number beyond. (For downgrades see unseenDowngrades.) A
// contender may be granted only if its number is up to completeThrough, since a gap in the numbers
// below it may hide an earlier contender.
type directoryView struct {
	// contenders are ordered by number; foreign counts those of other processes. byKind has the
	// same contenders for each kind: how many block another follows from their places there.
	// Without kindsDiffer it is empty (see ofKind).
	contenders []*contender
	byKind     [][]*contender
	foreign    int
	// completeThrough is a number. It is nothingKnown before the first list of the directory.
	completeThrough int64
	// directory is the czxid of the directory, 0 if it is not known yet. It only grows within
	// a session. All else here is about this directory.
	directory int64
	// unseenDowngrades are the kinds of the downgrades that contenders of other processes may have
	// left at their places when they went, such as a reader at the place of a writer. unseenSince
	// is the clock at which the last of them went. A list asked for later shows such downgrades.
	unseenDowngrades queue.KindSet
	unseenSince      uint64
	numbers          numbers // how near the end of its numbers the directory is
	// othersCame is for how many creates to come those of other processes are expected in between:
	// see mayHaveMissed.
	othersCame uint8
}

// ownEntries are the contenders of this process.
type ownEntries struct {
	// entries holds each entry with a CreateNode or a node that may exist. None of them is unsent.
	entries entryTable
	// unsent are entries that wait for a session, or outside (numbers.go), in order of arrival.
	// unsentLeft is how many of them have left: compactUnsent takes those out.
	unsent     []*entry
	unsentLeft int32
	untilTick  bool // new entries wait outside until the next Tick: see noteRepeat
	// waiting holds for each kind the queued entries, by number. waitingTries of them have a try.
	waitingTries int32
	waiting      [][]*contender
	// unanswered are the entries in order of their CreateNode. The first one is not answered.
	// Answered ones stay behind it until its answer comes.
	unanswered []*entry
	// creating is how many entries are in stage creating. Abandoned ones may be many, before them
	// in unanswered. listsDue is how many of both have listAfter.
	creating, listsDue int32
	// holders are the entries in the list that are held or make their held marker, by number.
	holders []*contender
	// lastDeleted is the entry whose DeleteNode came last, until that is answered, if its node is
	// known to be in the directory. Each CreateNode without Guard names it as After.
	lastDeleted *entry
	// requests holds the entry of each open request. owners holds, for each named owner and kind,
	// the entry that waits or holds.
	requests *requests.Table[entry]
	owners   map[owner]*entry
}

// proofs holds what State.proven asks. A contender may only hold if its node was seen after the last
// departure that this process has heard of: without it another contender may hold already. Each doubt
// is a clock: a proof of an earlier clock does not count.
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

// scratch is memory that a State needs during an event only. The States of a process share it: each
// would keep as much as its longest event has needed.
type scratch struct {
	out          []Effect
	blockers     []*contender
	firstWaiting []*contender
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func newView() directoryView {
	return directoryView{completeThrough: nothingKnown, numbers: newNumbers()}
}

// New returns the State of a lock without requests. The names of its nodes have the Incarnation: no
// two States that ever share a directory may have the same. Nothing may write to the rule.
func New(rule *queue.Rule, in Incarnation) *State {
	return &State{rule: rule, kindsDiffer: kindsDiffer(rule), incarnation: in, lastSerial: serialsOf(rule),
		directoryView: newView()}
}

func (s *State) needScratch() {
	if s.scratch == nil {
		s.scratch = scratches.Get().(*scratch)
	}
}

// Performed notes that the effects of the last Step have been performed. The slice that Step has
// returned is not valid any more.
func (s *State) Performed() {
	if f := s.scratch; f != nil {
		clear(f.out)
		clear(f.blockers)
		clear(f.firstWaiting)
		s.scratch = nil
		scratches.Put(f)
	}
}

// add adds an effect, of a request or with the ID 0, and returns it for the other fields, until the
// next add.
func (s *State) add(kind requests.EffectKind, id requests.ID) *Effect {
	s.out = append(s.out, Effect{})
	f := &s.out[len(s.out)-1]
	f.Kind, f.ID = kind, id
	return f
}

// ask adds an effect that is answered under a serial.
func (s *State) ask(kind requests.EffectKind, serial uint64) *Effect {
	f := s.add(kind, 0)
	f.Serial = serial
	return f
}

func (s *State) refuse(id requests.ID, why requests.Reason) { s.add(requests.Refuse, id).Reason = why }

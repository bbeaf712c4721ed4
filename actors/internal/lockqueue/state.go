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

	directoryView                 // contenders, completeThrough, directoryCzxid and others
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
	// directoryCzxid is 0 if it is not known yet. It only grows within a session. All else here is about
	// the directory with this czxid, the present one.
	directoryCzxid int64
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
	unsent    requests.List[entry]
	untilTick bool // new entries wait outside until the next Tick: see noteRepeat
	// waiting holds for each kind the queued entries, by number. waitingTries of them have a try.
	waitingTries int32
	waiting      [][]*contender
	// unanswered are the entries whose CreateNode is not answered, in order of their CreateNode.
	unanswered requests.List[entry]
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

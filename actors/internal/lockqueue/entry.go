package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// ownEntries are the contenders of this process.
type ownEntries struct {
	// entries holds each entry with a CreateNode or a node that may exist. None of them is unsent.
	entries entryTable
	// unsent are entries that wait for a session, or outside (numberend.go), in order of arrival.
	// unsentLeft is how many of them have left: compactUnsent takes those out.
	unsent     []*entry
	unsentLeft int32
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
	// known to be in the directory. Each CreateNode without Beside names it as After.
	lastDeleted *entry
	// requests holds the entry of each open request. owners holds, for each named owner and kind,
	// the entry that waits or holds.
	requests *requests.Table[entry]
	owners   map[owner]*entry
}

// maxListsDue bounds the CreateNodes with ListAfter that are not answered. There are that many if
// requests end while their creates wait to be sent: if each batch of them read all names, that
// would be the square of their number. A contender without a list asks for one once its node is
// made.
const maxListsDue = 64

// entry is a contender of this process, from the first request for it until its node is deleted
// and its requests have ended. A variable e is an entry, c a contender of any process, ev an event.
type entry struct {
	contender
	stage stage
	// ending is how its last request has ended.
	ending ending
	// listAfter reports whether its CreateNode has ListAfter.
	listAfter bool
	// recent reports whether its Created was Recent.
	recent bool
	// mayBeDeleted reports whether a transaction that deletes its node may have been executed
	// already. A DeleteNode that finds no node then does not show that another client deleted it.
	mayBeDeleted bool
	// revocable sets a watch on the node from the grant on, and revoked reports whether another
	// client has asked for the lock.
	revocable, revoked bool
	// atomic reports whether an atomic create makes the node: see Acquire.Atomic.
	atomic bool

	downgrade downgrade
	// token is set from the Created on. The token of a downgrade is that of the entry beside which
	// it was made.
	token requests.Token
	// serial is the serial of its CreateNode, and the key in State.entries; 0 before the first.
	serial uint64
	// sentAt is the clock of its CreateNode, and createdAt the clock of its Created. createdAt is 0
	// before that, and sentAt <= createdAt after it.
	sentAt, createdAt uint64

	owner    string
	data     string
	requests []request
	buf      [1]request // the memory of requests, if there is only one
}

// stage is how far an entry has come in its life.
type stage uint8

const (
	unsent       stage = iota
	creating           // its CreateNode is not answered
	abandoned          // its CreateNode is not answered, and it has no requests any more
	created            // its CreateNode has just been answered; lasts only within the event
	queued             // its node is in the queue, and it may not hold yet
	makingMarker       // it may hold once its held marker is made
	held
	leaving // its DeleteNode is not answered, or it has left without a node to delete
)

// ending is how the last request of an entry has ended.
type ending uint8

const (
	clean     ending = iota // it has not ended, or nothing follows
	unclean                 // by a Cancel that is Unclean: the held marker stays
	releasing               // by a Release, which is answered at the end of the node: see noteRelease
)

// downgrade is what an entry has to do with downgrades.
type downgrade struct {
	// of is the held entry of the same owner beside which this one is created, until its CreateNode
	// is answered.
	of *entry
	// made reports whether there ever was an of: then the number does not say when the node came.
	made bool
	// beside counts the entries that have this one as their of. The entry does not leave while
	// there are any.
	beside int16
}

// request is one request for an entry. A further request of its owner shares the entry.
type request struct {
	id              requests.ID
	try             bool
	notifyContended bool // once the entry holds: see Acquire.NotifyContended
}

// answered reports whether the CreateNode of an entry that has one is answered.
func (e *entry) answered() bool { return e.stage > abandoned }

// newEntry returns an entry without a node.
func newEntry(kind queue.Kind) *entry {
	e := &entry{contender: contender{kind: kind}}
	e.entry = e
	return e
}

func (s *State) startWaiting(e *entry) {
	e.stage = queued
	s.insertByKind(&s.waiting, &e.contender)
	if e.hasTry() {
		s.waitingTries++
	}
}

func (s *State) stopWaiting(e *entry) {
	if e.stage == queued {
		s.waiting[e.kind] = remove(s.waiting[e.kind], &e.contender)
		if e.hasTry() {
			s.waitingTries--
		}
	}
}

// waitingInOrder returns all queued entries by number.
func (s *State) waitingInOrder() (all []*entry) {
	for _, line := range s.waiting {
		all = slices.AppendSeq(all, own(line))
	}
	slices.SortFunc(all, func(a, b *entry) int { return compareSeq(&a.contender, &b.contender) })
	return all
}

// nextToHold returns the contenders that may be granted next: the first queued one of each kind,
// unless an earlier one of these keeps it waiting. Contenders of one kind hold in their order. The
// slice is valid until a contender starts or stops waiting.
func (s *State) nextToHold() []*contender {
	s.firstWaiting = s.firstWaiting[:0]
	for _, line := range s.waiting {
		if len(line) > 0 {
			s.firstWaiting = insert(s.firstWaiting, line[0])
		}
	}
	next := s.firstWaiting[:0]
	for _, c := range s.firstWaiting {
		if !slices.ContainsFunc(next, func(w *contender) bool { return keepsWaiting(s.rule, w.kind, c.kind) }) {
			next = append(next, c)
		}
	}
	return next
}

// awaitAnswer notes that the entry's CreateNode is sent.
func (s *State) awaitAnswer(e *entry) {
	s.unanswered = append(s.unanswered, e)
	s.creating++
	if e.listAfter {
		s.listsDue++
	}
}

// markAnswered notes that the entry's CreateNode is answered.
func (s *State) markAnswered(e *entry) {
	if e.stage == creating {
		s.creating--
	}
	if e.listAfter {
		s.listsDue--
	}
	e.stage = created
	for len(s.unanswered) > 0 && s.unanswered[0].answered() {
		s.unanswered = shift(s.unanswered)
	}
}

// put writes to a map, and makes the map first if there is none.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// behindOwn reports whether a new contender comes behind others of this process. Then its place
// mostly follows from theirs, without a list.
func (s *State) behindOwn() bool {
	return s.listsOwn() || s.creating > 0
}

package lockqueue

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// State is what one process knows of one lock: its own contenders, in whatever
// stage, and those of others as far as they matter. The zero State is of no use;
// see NewState. It is for one goroutine at a time.
//
// What it knows is exact up to a horizon: every node with a sequence number up to
// there is either in the list or gone for good. Numbers of one directory only grow,
// so a node may join only beyond the horizon. (They begin anew when the directory is
// deleted and made again: then all that was known is forgotten.) A contender's verdict
// counts only once it is within; until then a gap in the numbers may hide somebody who
// came earlier.
//
// Near the end of ZooKeeper's 32-bit numbers nodes rank by czxid instead, until the
// directory is another one.
type State struct {
	rule        queue.Rule
	incarnation Incarnation

	clock       uint64 // counts events
	lastSerial  uint64 // the last serial number of an effect that is answered
	epoch       uint64
	firstSerial uint64 // serials below belong to former epochs
	session     SessionState
	closed      requests.Reason

	list            []*contender   // by rank
	completeThrough int64          // of rank.major
	byCzxid         bool           // rank is by czxid
	directory       int64          // czxid of the directory that list and horizon are about
	waiting         [][]*contender // for each kind, ours in the list that do not hold, by rank
	waitingTries    int            // how many of waiting are tries

	unsent      []*contender          // ours without a Create, in order of arrival
	unsentLeft  int                   // how many of them have left
	lastDeleted *contender            // ours whose DoDelete came last, until that is answered; see after
	unanswered  []*contender          // ours in order of their Create; answered ones are dropped when they come first
	entries     map[uint64]*contender // by serial: creating, in the list, or leaving
	requests    *requests.Table[contender]
	owners      map[owner]*contender // waiting, holding, or lost and not released

	// A contender's node is proven to exist by an active watch, or by what was read for a
	// request made at its provenAt or later. A proof counts only if it was asked for at all
	// of these clocks or later: doubtedAt, when it was last heard that a contender of another
	// process has left, or that a node of ours was missing; staleAt, the Tick before the last
	// one; and the contender's own doubtedAt.
	doubtedAt       uint64
	staleAt         uint64
	tickedAt        uint64 // clock of the last Tick
	departureSeenAt uint64 // clock at which the last snapshot came that shows departures

	foreign      int           // how many of list are not ours
	listing      uint64        // serial of the list in flight, or 0
	listingAt    uint64        // clock when it was asked for
	listAgain    bool          // the one in flight may be too old
	unseen       queue.KindSet // what may stand where foreign nodes have left, unseen
	unseenSince  uint64        // clock when the last of those left
	delay        delay
	watches      map[string]*watch
	reported     map[string]bool
	blockers     []int        // scratch
	firstWaiting []*contender // scratch

	watchAfterFailure uint64 // serial of the watch on holders because a list failed
	contention        contentionWatch

	out []Effect
}

// unknown is the horizon of one who knows nothing.
const nothingKnown int64 = math.MinInt64 / 2

// stranger is the sequence number of all children whose names have none.
const unknownSeq = nothingKnown

// NewState is the state of a lock that nobody here has asked for yet. in marks its
// nodes' names; no two States that ever share a directory may have the same.
func New(rule queue.Rule, in Incarnation) *State {
	return &State{rule: rule, incarnation: in, completeThrough: nothingKnown}
}

// Rest gives back the memory that a State has for the next event, if it is Idle. It is
// for locks of which many rest most of the time.
func (s *State) ReleaseMemory() {
	if !s.Idle() {
		return
	}
	s.entries, s.requests, s.owners, s.out, s.blockers = nil, nil, nil, nil, nil
	s.unanswered, s.unsent, s.unsentLeft = nil, nil, 0
	s.waiting, s.firstWaiting = nil, nil
	if len(s.list) == 0 {
		s.list = nil
	}
	if len(s.watches) == 0 {
		s.watches = nil
	}
}

// put writes to a map that is made when it is needed.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Step takes an event into the state and gives what is to be done about it, in order.
// The slice is good until the next Step. (It is generic so that an event need not be
// allocated.)
func Step[E Event](s *State, e E) []Effect {
	s.out = s.out[:0]
	s.clock++
	e.apply(s)
	s.watchContention()
	return s.out
}

// Idle tells that nobody here wants anything of the lock and no answer is awaited.
func (s *State) Idle() bool {
	return len(s.entries) == 0 && s.requests.Len() == 0 && len(s.unsent) == s.unsentLeft && s.listing == 0
}

// Ending reports whether a node of ours may still be there after Close.
func (s *State) Ending() bool { return len(s.entries) > 0 }

// Node returns the name of the node of the contender with the serial number, or what it
// begins with if its Create is not answered, and whether it is; "" if the contender has left.
func (s *State) Node(serial uint64) (name string, made bool) {
	c := s.entries[serial]
	switch {
	case c == nil:
		return "", false
	case c.name == "":
		return s.incarnation.Prefix(c.serial, s.rule.Markers[c.kind]), false
	}
	return c.name, true
}

// stage is where a contender of ours is in its life.
type stage uint8

const (
	unsent       stage = iota
	creating           // its Create is on the way
	abandoned          // so is its Create, but nobody wants the node any more
	queued             // its node waits
	makingMarker       // it may hold, but for the mark
	held
	leaving // its Delete is on the way
	lost    // it held; its owner has yet to release it
)

// request is what somebody wants of a contender: several, if its owner asked again.
type request struct {
	id            requests.ID
	try           bool
	tellContended bool // that others wait, once it holds
	revokeSent    bool // that somebody wants the lock back
}

// contender is a node in the queue, or one of ours that is to be or has been one. There
// may be many: what is small stands together.
type contender struct {
	name     string
	seq      int64
	rank     rank
	provenAt uint64 // clock of the newest request whose answer has shown its node
	// doubtedAt is the clock at which the last snapshot came that shows departures, and not its
	// node. Of a stranger it is the clock at which the last snapshot came that shows it.
	doubtedAt uint64
	kind      queue.Kind
	listed    bool // is in State.list

	// The rest is for our own only.
	ours        bool
	stage       stage
	atomic      bool
	answered    bool
	listAfter   bool // its Create has Look
	inDirectory bool // it is known to be in the directory that State.directory is about
	// revocable: its node is to be watched from when it holds.
	revocable    bool
	revoked      bool            // somebody has asked for it
	releasing    bool            // see release
	mayBeDeleted bool            // a transaction that deletes its node may have been executed
	downgraded   bool            // it has or had a leader: its number does not tell when it came
	reason       requests.Reason // it was lost
	step         uint32
	downgrades   int32 // see leader
	czxid        int64
	serial       uint64
	atomicCreate uint64 // see Acquire.Group; a follower has that of its leader
	owner        string
	data         string
	sentAt       uint64 // clock of its Create
	createdAt    uint64 // clock of its Created; 0 before that
	requests     []request
	buf          [1]request // what requests mostly is
	// leader is the one beside which it gets its place: held by the same owner. The
	// leader does not leave before the Creates of its followers are answered.
	downgradeOf *contender

	generation uint64 // that was in force at czxid
}

func (c *contender) hasTry() bool {
	for _, r := range c.requests {
		if r.try {
			return true
		}
	}
	return false
}

// rank is a contender's place in the queue. major is its sequence number; near the end of the
// numbers it is its czxid. Then minor orders those of ours that one transaction made, by their
// steps and, for equal steps, by their serial numbers.
type rank struct {
	major int64
	minor uint64
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor))
}

// watch is on a node from the moment it is asked for, and active from its answer.
type watch struct {
	serial uint64
	active bool
}

// place is where a rank stands, or would stand, in a sorted list.
func place(list []*contender, r rank) int {
	// Most of the time it is the last or the first.
	if n := len(list); n == 0 || list[n-1].rank.compare(r) < 0 {
		return n
	}
	return sort.Search(len(list), func(i int) bool { return list[i].rank.compare(r) >= 0 })
}

func insert(list []*contender, c *contender) []*contender {
	i := place(list, c.rank)
	list = append(list, nil)
	copy(list[i+1:], list[i:])
	list[i] = c
	return list
}

// shift drops the first of a list. An empty one can use its memory again.
func shift(list []*contender) []*contender {
	list[0] = nil
	if len(list) == 1 {
		return list[:0]
	}
	return list[1:]
}

func remove(list []*contender, c *contender) []*contender {
	i := place(list, c.rank)
	for ; i < len(list) && list[i] != c; i++ {
	}
	switch {
	case i >= len(list):
		return list
	case i == 0: // the usual departure: do not move the others
		return shift(list)
	}
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

func (s *State) addToList(c *contender) {
	if !c.listed {
		c.listed = true
		s.list = insert(s.list, c)
		if !c.ours {
			s.foreign++
		}
	}
}

func (s *State) removeFromList(c *contender) {
	if c.listed {
		c.listed = false
		s.list = remove(s.list, c)
		if !c.ours {
			s.foreign--
		}
	}
}

func (s *State) startWaiting(c *contender) {
	c.stage = queued
	s.enqueue(c)
	if c.hasTry() {
		s.waitingTries++
	}
}

func (s *State) enqueue(c *contender) {
	if s.waiting == nil {
		s.waiting = make([][]*contender, len(s.rule.BlockedBy))
	}
	s.waiting[c.kind] = insert(s.waiting[c.kind], c)
}

func (s *State) stopWaiting(c *contender) {
	if c.stage == queued {
		s.waiting[c.kind] = remove(s.waiting[c.kind], c)
		if c.hasTry() {
			s.waitingTries--
		}
	}
}

// inLine is all of ours that wait, by rank.
func (s *State) waitingInOrder() []*contender {
	all := slices.Concat(s.waiting...)
	slices.SortFunc(all, func(a, b *contender) int { return a.rank.compare(b.rank) })
	return all
}

// next is those of ours that may be the next to hold: the first that waits, and the
// first of another kind, unless it is one that waits at least as long as that.
// Contenders of one kind hold in their order. It is good until somebody starts or stops
// waiting.
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

// find returns the contender of a name that is listed, or is ours and waits for its place.
func (s *State) find(name string) *contender {
	if s.byCzxid {
		serial, _ := s.incarnation.serial(name)
		if c := s.entries[serial]; c != nil && c.stage == queued && c.name == name {
			return c
		}
	}
	seq, _, ok := s.rule.Parse(name)
	from := 0
	if !ok {
		seq = unknownSeq
	}
	if !s.byCzxid {
		from = place(s.list, rankOf(s.byCzxid, seq, 0))
	}
	for _, c := range s.list[from:] {
		if c.name == name {
			return c
		}
		if c.seq > seq && !s.byCzxid {
			break
		}
	}
	return nil
}

// Nodes gives serial number and name of the nodes of ours that are known to be there.
// It is for clearing up after a failure.
func (s *State) Nodes() map[uint64]string {
	nodes := map[uint64]string{}
	for serial, c := range s.entries {
		if c.name != "" {
			nodes[serial] = c.name
		}
	}
	return nodes
}

package lockqueue

import (
	"cmp"
	"iter"
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

	unsent      []*entry          // ours without a Create, in order of arrival
	unsentLeft  int               // how many of them have left
	lastDeleted *entry            // ours whose DoDelete came last, until that is answered; see after
	unanswered  []*entry          // ours in order of their Create; answered ones are dropped when they come first
	entries     map[uint64]*entry // by serial: creating, in the list, or leaving
	requests    *requests.Table[entry]
	owners      map[owner]*entry // waiting, holding, or lost and not released

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
	notifyContended bool // that others wait, once it holds
	revokeSent    bool // that somebody wants the lock back
}

// contender is a node in the lock's directory, as this process has last seen it: one of any
// process. There may be many.
type contender struct {
	name string
	// seq is the sequence number in the name, or unknownSeq for a name of no known form.
	seq  int64
	rank rank
	kind queue.Kind
	// listed reports whether the contender is in State.list.
	listed bool
	// provenAt is the clock of the newest request whose answer has shown the node. It never
	// decreases while the node is the same.
	provenAt uint64
	// doubtedAt is the clock at which a snapshot came that shows departures and not this node; a
	// proof must be as new. Of an unknown name it is the clock at which the last snapshot came
	// that shows the node.
	doubtedAt uint64
	// entry is nil for a contender of another process. For one of this process it is the entry
	// that the contender is part of.
	entry *entry
}

// entry is a contender of this process, from the first request for it until its node is deleted
// and its requests have ended.
type entry struct {
	contender
	stage stage
	// serial is that of its CreateNode, and the key in State.entries; 0 before the first.
	serial uint64
	// sentAt is the clock of its CreateNode, and createdAt that of its Created. createdAt is 0
	// before that, and sentAt <= createdAt after it.
	sentAt, createdAt uint64
	// czxid, step and generation are the token, from the Created on. A downgrade has those of
	// the entry that it was made beside.
	czxid      int64
	step       uint32
	generation uint64
	// answered reports whether its CreateNode is answered.
	answered bool
	// listAfter reports whether its CreateNode has ListAfter.
	listAfter bool
	// inDirectory reports whether its node is known to be in State.directory.
	inDirectory bool
	// mayBeDeleted reports whether a transaction that deletes its node may have been executed
	// already: then a DeleteNode that finds no node is no news.
	mayBeDeleted bool
	// releasing reports whether the release of a request waits for the end of the node: see
	// noteRelease. The entry has no requests then.
	releasing bool
	// revocable has the node watched from the grant on, and revoked reports whether another
	// client has asked for the lock.
	revocable, revoked bool
	// reason is why the grant was lost, if stage is lost.
	reason requests.Reason

	// atomic reports whether the node is made by an atomic create, and atomicCreate is its
	// number. A downgrade has the number of the entry that it was made beside.
	atomic       bool
	atomicCreate uint64
	// downgradeOf is the held entry of the same owner beside which this one is created, until
	// its CreateNode is answered; downgraded reports whether there ever was one: then the
	// sequence number does not say when the node came. downgrades counts the entries whose
	// downgradeOf this one is; it does not leave while there are any.
	downgradeOf *entry
	downgraded  bool
	downgrades  int32

	owner    string
	data     string
	requests []request
	buf      [1]request // the memory of requests, if it has only one
}

func (c *entry) hasTry() bool {
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
func shift[T any](list []*T) []*T {
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
		if c.entry == nil {
			s.foreign++
		}
	}
}

func (s *State) removeFromList(c *contender) {
	if c.listed {
		c.listed = false
		s.list = remove(s.list, c)
		if c.entry == nil {
			s.foreign--
		}
	}
}

// own yields the entries of this process's contenders in a list.
func own(list []*contender) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, c := range list {
			if c.entry != nil && !yield(c.entry) {
				return
			}
		}
	}
}

// newEntry returns an entry without a node.
func newEntry(e entry) *entry {
	e.entry = &e
	return &e
}

func (s *State) startWaiting(c *entry) {
	c.stage = queued
	s.enqueue(c)
	if c.hasTry() {
		s.waitingTries++
	}
}

func (s *State) enqueue(c *entry) {
	if s.waiting == nil {
		s.waiting = make([][]*contender, len(s.rule.BlockedBy))
	}
	s.waiting[c.kind] = insert(s.waiting[c.kind], &c.contender)
}

func (s *State) stopWaiting(c *entry) {
	if c.stage == queued {
		s.waiting[c.kind] = remove(s.waiting[c.kind], &c.contender)
		if c.hasTry() {
			s.waitingTries--
		}
	}
}

// inLine is all of ours that wait, by rank.
func (s *State) waitingInOrder() (all []*entry) {
	for _, line := range s.waiting {
		for _, c := range line {
			all = append(all, c.entry)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.rank.compare(b.rank) })
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
			return &c.contender
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

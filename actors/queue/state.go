package queue

import (
	"math"
	"sort"
)

// State is what one process knows of one lock: its own contenders, in whatever
// stage, and those of others as far as they matter. The zero State is of no use;
// see NewState. It is for one goroutine at a time.
//
// What it knows is exact up to a horizon: every node with a sequence number up to
// there is either in the list or gone for good. Numbers of one directory only grow,
// so a node may join only beyond the horizon. (They begin anew when the directory is
// deleted and made again: then all that was known is forgotten.) A contender's verdict counts only once
// it is within; until then a gap in the numbers may hide somebody who came earlier.
type State struct {
	rule Rule
	in   Incarnation

	clock   uint64 // counts events
	serials uint64 // the last serial number of an effect that is answered
	epoch   uint64
	oldest  uint64 // serials below belong to former epochs
	session SessionState
	closed  Why

	list      []*contender // by sequence number
	horizon   int64
	directory int64        // czxid of the directory that list and horizon are about
	waiting   []*contender // ours in the list that do not hold, by sequence number
	tries     int          // how many of waiting are tries

	unsent      []*contender          // ours without a Create, in order of arrival
	left        int                   // how many of them have left
	outstanding []*contender          // ours in order of their Create; answered ones are dropped when they come first
	ours        map[uint64]*contender // by serial: creating, in the list, or leaving
	requests    map[ID]*contender
	owners      map[string]*contender // waiting, holding, or lost and not released

	foreign    int    // how many of list are not ours
	listing    uint64 // serial of the list in flight, or 0
	listingAt  uint64 // clock when it was asked for
	listAgain  bool   // the one in flight may be too old
	watches    map[string]*watch
	reported   map[string]bool
	blockersAt []int // scratch

	watchedBlind uint64 // serial of the watch on holders because a list failed

	out []Effect
}

// unknown is the horizon of one who knows nothing.
const unknown int64 = math.MinInt64 / 2

// NewState is the state of a lock that nobody here has asked for yet. in marks its
// nodes' names; no two States that ever share a directory may have the same.
func NewState(rule Rule, in Incarnation) *State {
	return &State{
		rule: rule, in: in, horizon: unknown,
		ours:     map[uint64]*contender{},
		requests: map[ID]*contender{},
		owners:   map[string]*contender{},
		watches:  map[string]*watch{},
		reported: map[string]bool{},
	}
}

// Step takes an event into the state and gives what is to be done about it, in order.
// The slice is good until the next Step. (It is generic so that an event need not be
// allocated.)
func Step[E Event](s *State, e E) []Effect {
	s.out = s.out[:0]
	s.clock++
	e.apply(s)
	return s.out
}

// Idle tells that nobody here wants anything of the lock and no answer is awaited.
func (s *State) Idle() bool {
	return len(s.ours) == 0 && len(s.requests) == 0 && len(s.unsent) == s.left && s.listing == 0
}

// stage is where a contender of ours is in its life.
type stage uint8

const (
	unsent    stage = iota
	creating        // its Create is on the way
	abandoned       // so is its Create, but nobody wants the node any more
	queued          // its node waits
	held
	leaving // its Delete is on the way
	lost    // it held; its owner has yet to release it
)

// request is what somebody wants of a contender: several, if its owner asked again.
type request struct {
	id  ID
	try bool
}

// contender is a node in the queue, or one of ours that is to be or has been one.
type contender struct {
	name   string
	seq    int64
	kind   Kind
	listed bool   // is in State.list
	seenAt uint64 // clock of the last snapshot that showed it

	// The rest is for our own only.
	ours     bool
	stage    stage
	serial   uint64
	owner    string
	data     []byte
	czxid    int64
	step     uint32
	sentAt   uint64 // clock of its Create
	bornAt   uint64 // clock of its Created
	answered bool
	// unsure: a node of somebody else stood between this one and the lock since
	// its own was last seen. It takes the lock only under a watch on its own node.
	unsure   bool
	aged     bool // it was what it is at the last Tick, too
	requests []request
	buf      [1]request // what requests mostly is
	why      Why        // it was lost
	releaser ID         // whose release took it away, if released
	released bool
}

func (c *contender) hasTry() bool {
	for _, r := range c.requests {
		if r.try {
			return true
		}
	}
	return false
}

// watch is on a node from the moment it is asked for, and active from its answer.
type watch struct {
	serial uint64
	active bool
}

func (s *State) effect(e Effect) { s.out = append(s.out, e) }

// place is where a sequence number stands, or would stand, in a sorted list.
func place(list []*contender, seq int64) int {
	// Most of the time it is the last or the first.
	if n := len(list); n == 0 || list[n-1].seq < seq {
		return n
	}
	return sort.Search(len(list), func(i int) bool { return list[i].seq >= seq })
}

func insert(list []*contender, c *contender) []*contender {
	i := place(list, c.seq)
	list = append(list, nil)
	copy(list[i+1:], list[i:])
	list[i] = c
	return list
}

func remove(list []*contender, c *contender) []*contender {
	i := place(list, c.seq)
	for ; i < len(list) && list[i] != c; i++ {
	}
	switch {
	case i >= len(list):
		return list
	case i == 0: // the usual departure: do not move the others
		list[0] = nil
		return list[1:]
	}
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

func (s *State) enlist(c *contender) {
	if !c.listed {
		c.listed = true
		s.list = insert(s.list, c)
		if !c.ours {
			s.foreign++
		}
	}
}

func (s *State) delist(c *contender) {
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
	s.waiting = insert(s.waiting, c)
	if c.hasTry() {
		s.tries++
	}
}

func (s *State) stopWaiting(c *contender) {
	if c.stage == queued {
		s.waiting = remove(s.waiting, c)
		if c.hasTry() {
			s.tries--
		}
	}
}

// find is the listed contender of a name.
func (s *State) find(name string) *contender {
	seq, _, ok := Parse(name)
	if !ok {
		return nil
	}
	for i := place(s.list, seq); i < len(s.list) && s.list[i].seq == seq; i++ {
		if s.list[i].name == name {
			return s.list[i]
		}
	}
	return nil
}

// Nodes gives serial number and name of the nodes of ours that are known to be there.
// It is for clearing up after a failure.
func (s *State) Nodes() map[uint64]string {
	nodes := map[uint64]string{}
	for serial, c := range s.ours {
		if c.name != "" {
			nodes[serial] = c.name
		}
	}
	return nodes
}

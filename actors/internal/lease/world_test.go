package lease

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// world is one history: a client that holds a lock through a server, ZooKeeper, a rival that holds
// whenever the client's node is not the first in the queue, and what happens to them, in virtual
// time. It has no goroutines: its seed decides all.
type world struct {
	setting
	weak     weakness
	random   *rand.Rand
	now      time.Duration
	events   eventHeap
	steps    int
	delays   bool // messages are delayed, and processes pause, for long
	faults   []string
	violated string // the first violation
	trace    []string
	tracing  bool

	leader             *zkLeader
	server             *leaseServer
	client             *leaseClient
	toServer, toClient *oneWay
	lastID             int
	lapses, grants     int
	loseAnswers        int // how many streams break while an answer to a renewal is on its way
}

// setting holds the times of a world.
type setting struct {
	timeout, margin, limit time.Duration // of the server's session, its bridge, its leases
	ping, renew            time.Duration // pauses of the bridge and of the client
	tick                   time.Duration // of ZooKeeper
	syncLimit              time.Duration // in ticks
}

// weakness is a way to weaken the rule in what surrounds the machines.
type weakness struct {
	promiseByNewest, oldClock, clockStops                bool
	drainsAtOnce, closedIsRelease, closesLostAfterMargin bool
	grantExtends, resumesLapsed, deletesOldNodes         bool
}

const (
	maxDrift = 0.0025 // of a clock's rate
	zkDelay  = 250 * time.Millisecond
)

// bound returns the time within which the rival must get the lock.
func (s setting) bound() time.Duration { return 3 * s.timeout }

type event struct {
	at     time.Duration
	number int
	do     func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// at has something done at a time.
func (w *world) at(at time.Duration, do func()) {
	w.steps++
	heap.Push(&w.events, event{max(at, w.now), w.steps, do})
}

// in has something done after a while.
func (w *world) in(pause time.Duration, do func()) { w.at(w.now+pause, do) }

func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until && w.violated == "" {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = max(w.now, until)
}

func (w *world) chance(p float64) bool { return w.random.Float64() < p }

// seconds returns a random time between two numbers of seconds.
func (w *world) seconds(from, to float64) time.Duration {
	return time.Duration((from + w.random.Float64()*(to-from)) * float64(time.Second))
}

func (w *world) nextID() int { w.lastID++; return w.lastID }

func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%8.3f  %s", w.now.Seconds(), fmt.Sprintf(format, args...)))
	}
}

func (w *world) violate(format string, args ...any) {
	if w.violated == "" {
		w.violated = fmt.Sprintf(format, args...)
		w.log("VIOLATION: %s", w.violated)
	}
}

// checkExclusion is called whenever one of the two begins to hold or to believe.
func (w *world) checkExclusion() {
	if w.leader.rivalHolds && w.client != nil && w.client.believes() {
		w.violate("the client believes in node %d while the rival holds", w.client.holds)
	}
}

// proc is a process with a clock of its own. While it is frozen it does nothing. When it wakes it
// does what came in the meantime.
type proc struct {
	w           *world
	rate        float64       // of its clock
	stood       time.Duration // for how long its clock stood still
	frozenUntil time.Duration
	dead        bool
	life        int // counts its starts
	inbox       []func()
	check       func() // comes before all that the process does
}

func (w *world) newProc(check func()) proc {
	rate := 1 + maxDrift*(2*w.random.Float64()-1)
	switch w.random.IntN(3) {
	case 0:
		rate = 1 - maxDrift
	case 1:
		rate = 1 + maxDrift
	}
	return proc{w: w, rate: rate, check: check}
}

func (p *proc) clock() time.Duration { return time.Duration(float64(p.w.now-p.stood) * p.rate) }

// do has the process do something now, or when it wakes. It does not if it has ended by then.
func (p *proc) do(something func()) {
	life := p.life
	doIt := func() {
		if !p.dead && p.life == life {
			p.check()
			something()
		}
	}
	if p.w.now < p.frozenUntil || len(p.inbox) > 0 {
		p.inbox = append(p.inbox, doIt)
		return
	}
	doIt()
}

// after has the process do something when its clock has advanced.
func (p *proc) after(pause time.Duration, something func()) {
	life := p.life
	p.w.in(time.Duration(float64(max(pause, 0))/p.rate), func() {
		if p.life == life {
			p.do(something)
		}
	})
}

func (p *proc) every(pause time.Duration, something func()) {
	p.after(pause, func() { something(); p.every(pause, something) })
}

func (p *proc) freeze(pause time.Duration) {
	p.frozenUntil = max(p.frozenUntil, p.w.now+pause)
	p.w.at(p.frozenUntil, func() {
		for p.w.now >= p.frozenUntil && len(p.inbox) > 0 {
			do := p.inbox[0]
			p.inbox = p.inbox[1:]
			do()
		}
	})
}

// mayFreeze freezes the process now and then, between two steps that belong together.
func (p *proc) mayFreeze() {
	if p.w.delays && p.w.chance(0.01) {
		p.freeze(p.w.seconds(0, 12))
	}
}

// oneWay carries messages in one direction, in order. A cut holds them back, as TCP does.
type oneWay struct {
	w              *world
	typical, large time.Duration // delays
	cutUntil       time.Duration
	last           time.Duration // when the newest message arrives
}

func (o *oneWay) cut(pause time.Duration) { o.cutUntil = max(o.cutUntil, o.w.now+pause) }
func (o *oneWay) isCut() bool             { return o.w.now < o.cutUntil }

func (o *oneWay) send(arrive func()) {
	delay := time.Duration(o.w.random.Int64N(int64(o.typical)))
	switch {
	case o.w.delays && o.w.chance(0.04):
		delay = time.Duration(o.w.random.Int64N(int64(o.large)))
	case o.w.chance(0.2):
		delay = 0
	}
	o.last = max(o.last, o.w.now+delay)
	o.w.at(o.last, func() { o.arrive(arrive) })
}

func (o *oneWay) arrive(arrive func()) {
	if !o.isCut() {
		arrive()
		return
	}
	o.last = max(o.last, o.cutUntil)
	o.w.at(o.cutUntil, func() { o.arrive(arrive) })
}

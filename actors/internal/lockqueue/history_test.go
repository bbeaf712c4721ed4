package lockqueue

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// world is a directory on a server, processes whose States run against it, and contenders of other
// libraries (guests) that come and go. Requests in flight are served in any order, as concurrent
// ones are; answers overtake each other; but an event never comes later than an answer that the
// server gave after it.
type world struct {
	t             *rapid.T
	rule          queue.Rule
	nodes         map[string]*worldNode
	nextSeq       int64
	afterLast     int64 // the number that comes after the last one
	zxid          int64
	directory     int64 // czxid of the directory, 0 while there is none
	procs         []*process
	ids           requests.ID
	guests        int
	births        int64
	token         [2]int64 // of the last grant
	markers       heldMarkers
	revocations   revocations
	changes       []change // of the directory, in order
	lagging       bool     // servers show changes late
	atomicCreates bool     // several nodes may be made for one request
	// meddling has another client delete nodes of any process. That lets other contenders in before
	// the processes know; but no grant is made by a node that has been gone for long, or that went
	// while a contender of another process was ahead.
	meddling bool
	// quiet reports whether all processes have had time to notice what was deleted.
	quiet  bool
	trace  []string // events and effects
	late   []late
	ghosts map[string]ghost // nodes that another client deleted
}

type worldNode struct {
	name  string
	seq   int64
	born  int64 // its place in the queue, whatever its number
	kind  queue.Kind
	czxid int64
	plain bool     // its name has no sequence number; seq is the number of its creation
	proc  *process // nil: a guest
	epoch uint64
}

// ghost is a node that another client deleted.
type ghost struct {
	ticks   int  // of its process
	behind  bool // a contender of another process was ahead and blocked it
	watched bool // by its process, which has yet to hear of it
	proc    *process
	order   int  // how many were deleted before
	warned  bool // its process has heard that another node of its own was deleted later
}

// late is a create of a former session that has not reached the server yet.
type late struct {
	proc  *process
	epoch uint64
	Effect
}

type process struct {
	n                int
	state            *State
	permits          int // as this process has heard
	epoch            uint64
	up               bool
	view             view
	watches          map[string]bool
	directoryWatched bool                 // the directory is watched
	wantsContention  map[requests.ID]bool // requests with NotifyContended that have not been notified
	requests         []Effect             // sent to the server, not served
	behind           []behind             // reads of the directory behind transactions that were executed
	ticks            int
	timely           int          // events that had been emitted at the last tick
	lost             []unanswered // creates whose answer is lost
	events           []Wake
	emitted          int // events ever
	heard            int // events delivered
	answers          []answer
	open             map[requests.ID]string // requests: waiting, held, released
	nodeOf           map[requests.ID]string
	leaving          map[string]bool
	told             func(Effect) // is called with all effects, unless it is nil
}

type answer struct {
	event Event
	after int // events that come first
	due   int // the tick before which it comes at the latest; 0: none
}

func newWorld(t *rapid.T, rule queue.Rule, processes int) *world {
	w := &world{t: t, rule: rule, nodes: map[string]*worldNode{}, zxid: 100,
		markers: heldMarkers{waited: map[string]bool{}}, revocations: revocations{map[string]bool{}, map[requests.ID]bool{}}}
	w.directory, w.nextSeq = 1, rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1<<31-1<<20-3, 1<<31-1<<20),
		rapid.Int64Range(math.MaxInt32-3, math.MaxInt32), rapid.Int64Range(math.MinInt32, math.MinInt32+3)).Draw(t, "first sequence number")
	w.lagging = rapid.Bool().Draw(t, "followers lag")
	w.afterLast = rapid.SampledFrom([]int64{math.MaxInt32, math.MinInt32}).Draw(t, "after the last")
	for n := range processes {
		p := &process{n: n, permits: rule.Permits, state: New(rule, Incarnation{byte(n)}), view: newView(), open: map[requests.ID]string{}, wantsContention: map[requests.ID]bool{}, nodeOf: map[requests.ID]string{}}
		w.procs = append(w.procs, p)
		w.connect(p)
	}
	return w
}

func (w *world) connect(p *process) {
	for _, f := range p.requests { // they may be on their way yet, while the session lives on the server
		if f.Kind == CreateNode && f.Beside == "" {
			w.late = append(w.late, late{p, p.epoch, f})
		}
	}
	p.epoch++
	p.up = true
	p.watches, p.directoryWatched, p.requests, p.behind, p.lost, p.events, p.answers = map[string]bool{}, false, nil, nil, nil, nil, nil
	p.heard, p.emitted, p.timely = 0, 0, 0
	w.catchUp(p)
	p.leaving = map[string]bool{}
	w.step(p, Session{Epoch: p.epoch, State: Connected})
}

func (w *world) step(p *process, e Event) {
	w.trace = append(w.trace, fmt.Sprintf("process %d > %T %+v", p.n, e, e))
	for _, f := range slices.Clone(step(p.state, e)) {
		w.trace = append(w.trace, fmt.Sprintf("  do %d id %d serial %d %s %v", f.Kind, f.ID, f.Serial, f.Node, f.Nodes))
		w.perform(p, f)
		if p.told != nil {
			p.told(f)
		}
	}
}

func (w *world) perform(p *process, f Effect) {
	switch f.Kind {
	case RequestRevoke:
		w.told(p, f.ID)
	case RestoreData:
		p.requests = append(p.requests, f)
	case StartDelay:
		w.markers.delays = append(w.markers.delays, delaying{p, f.Serial, f.Node})
	case CreateNode, ListDirectory, WatchNodes, DeleteNode, CreateHeldMarker, ReplaceHeldMarker, DeleteWithHeldMarker, ReadHeldMarker:
		if f.Kind == DeleteNode {
			p.leaving[f.Node] = true
		}
		p.requests = append(p.requests, f)
	case Grant:
		if p.open[f.ID] != "waiting" {
			w.t.Fatalf("process %d: request %d is granted but was %q", p.n, f.ID, p.open[f.ID])
		}
		p.open[f.ID], p.nodeOf[f.ID] = "held", f.Node
		w.checkGrant(p, f)
	case Refuse:
		if p.open[f.ID] == "" {
			w.t.Fatalf("process %d: request %d is refused but was not open", p.n, f.ID)
		}
		delete(p.open, f.ID)
	case Lose:
		if p.open[f.ID] != "held" {
			w.t.Fatalf("process %d: request %d is lost but was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.open, f.ID)
	case ConfirmRelease:
		if p.open[f.ID] != "released" {
			w.t.Fatalf("process %d: request %d is released but was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.open, f.ID)
	case NotifyContended:
		if p.open[f.ID] != "held" || !p.wantsContention[f.ID] {
			w.t.Fatalf("process %d: request %d has a NotifyContended, was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.wantsContention, f.ID)
	}
}

func testHistories(t *testing.T, rule queue.Rule) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rule, rapid.IntRange(1, 3).Draw(t, "processes"))
		w.atomicCreates = rule.Permits > 1
		w.run()
		w.finish()
	})
}

func TestHistoriesOfMeddling(t *testing.T) {
	for name, rule := range map[string]queue.Rule{"mutex": queue.Mutex(), "semaphore": queue.Semaphore(2), "leases": queue.Leases(2), "request queue": queue.RequestQueue(), "read-write lock": queue.ReadWrite(), "delay": delayed()} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t, rule, rapid.IntRange(1, 3).Draw(t, "processes"))
				w.meddling = true
				w.run()
				w.rest()
				w.finish()
			})
		})
	}
}

func TestHistoriesOfAMutex(t *testing.T) { testHistories(t, queue.Mutex()) }

func TestHistoriesOfASemaphore(t *testing.T) {
	for _, permits := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) { testHistories(t, queue.Semaphore(permits)) })
	}
}

func TestHistoriesOfLeases(t *testing.T) {
	for _, permits := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) { testHistories(t, queue.Leases(permits)) })
	}
}

func TestHistoriesOfARequestQueue(t *testing.T) { testHistories(t, queue.RequestQueue()) }

func TestHistoriesOfAReadWriteLock(t *testing.T) { testHistories(t, queue.ReadWrite()) }

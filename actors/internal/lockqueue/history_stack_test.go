package lockqueue

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
)

// stack holds the fronts of some processes, each a semaphore or a local queue, over real States
// that run in worlds: the request queue and the leases of a semaphore, or the lock below local
// queues. Messages between a front and its States are delayed, but keep their order.
type stack struct {
	t        *rapid.T
	worlds   []*world
	fronts   []*front
	ids      requests.ID
	meddling bool
	traffic  []string // actions that deliver what is on its way

	acquire func(*rapid.T, *front)
	cancel  func(*front, requests.ID)
	release func(*front, requests.ID)
	hear    func(*front, *layer, message) // of a State
	atRest  func()                        // checks that no request sleeps that could be granted
	end     func(*front)                  // checks that the front remembers nothing
	permits int                           // of a semaphore
	tokens  map[int][2]int64              // greatest token by permits or kind
	owners  map[[2]int64]string           // the owners to which a local queue has granted a token
}

// front is the front of one process.
type front struct {
	n          int
	semaphore  *semaphore.State
	localQueue *localqueue.Queue
	localActor machinetest.LocalRecorder
	layers     []*layer // one in each world
	open       map[requests.ID]*ownerRequest
	timing     bool                   // an IdleTimedOut is to come
	first      uint64                 // serial of the AcquireNode that began the node hold
	asking     []requests.ID          // for leases, in their order
	leases     map[uint64]requests.ID // by serial of the AcquireLease
}

// ownerRequest is a request of an owner. Its state is waiting, held or leaving.
type ownerRequest struct {
	ID      requests.ID
	Owner   string
	Kind    queue.Kind
	Permits int
	Try     bool
	state   string
	nodes   []*nodeRequest
	token   [2]int64
}

// layer is one State of a process. nodeRequest is a request of the front to it.
type (
	layer struct {
		w    *world
		p    *process
		by   map[uint64]*nodeRequest
		ids  map[requests.ID]*nodeRequest
		down []func()  // on their way to the State
		up   []message // on their way to the front
	}
	nodeRequest struct {
		serial uint64
		id     requests.ID
		node   string // by which the State has granted it
		lost   bool
	}
	message struct {
		serial uint64
		Effect
	}
)

func newStack(t *rapid.T, rules ...queue.Rule) *stack {
	s := &stack{t: t, tokens: map[int][2]int64{}, owners: map[[2]int64]string{}}
	processes := rapid.IntRange(2, 3).Draw(t, "processes")
	for _, rule := range rules {
		s.worlds = append(s.worlds, newWorld(t, rule, processes))
	}
	for n := range processes {
		f := &front{n: n, open: map[requests.ID]*ownerRequest{}, leases: map[uint64]requests.ID{}}
		for _, w := range s.worlds {
			l := &layer{w: w, p: w.procs[n], by: map[uint64]*nodeRequest{}, ids: map[requests.ID]*nodeRequest{}}
			l.p.told = l.told
			f.layers = append(f.layers, l)
		}
		s.fronts = append(s.fronts, f)
	}
	return s
}

// told sends the front what its State says about requests.
func (l *layer) told(e Effect) {
	switch e.Kind {
	case Grant, Refuse, Lose, ConfirmRelease, NotifyContended:
	default:
		return
	}
	x := l.ids[e.ID]
	switch e.Kind {
	case Grant:
		x.node = e.Node
	case Lose:
		x.lost = true
	}
	l.up = append(l.up, message{x.serial, e})
}

// ask, cancel and release do what the actor of the State does about messages of the front.
func (l *layer) ask(serial uint64, e Acquire) {
	l.w.ids++
	e.ID = l.w.ids
	x := &nodeRequest{serial: serial, id: e.ID}
	l.by[serial], l.ids[e.ID] = x, x
	l.p.open[e.ID] = "waiting"
	if e.NotifyContended {
		l.p.wantsContention[e.ID] = true
	}
	l.w.step(l.p, e)
}

func (l *layer) cancel(serial uint64) {
	if x := l.by[serial]; l.p.open[x.id] != "" {
		l.w.step(l.p, Cancel{ID: x.id, Reason: requests.Cancelled})
	}
}

func (l *layer) release(serial uint64) {
	x := l.by[serial]
	if l.p.open[x.id] != "held" {
		l.up = append(l.up, message{serial, Effect{Kind: Refuse, Reason: requests.NotHeld}})
		return
	}
	l.p.open[x.id] = "released"
	l.w.step(l.p, Release{ID: x.id})
}

func (l *layer) send(message func()) { l.down = append(l.down, message) }

// there reports whether the node by which x was granted exists. If not, its State must have
// reported the loss.
func (s *stack) there(l *layer, x *nodeRequest) bool {
	n := l.w.nodes[x.node]
	there := n != nil && n.proc == l.p
	if !there && !x.lost && l.p.open[x.id] == "held" && !s.meddling {
		s.t.Fatalf("process %d holds request %d without node %s: %s", l.p.n, x.serial, x.node, l.w)
	}
	return there
}

// answered takes the answers of a front to its owners, except for grants.
func (s *stack) answered(f *front, kind fmt.Stringer, id requests.ID, why requests.Reason) {
	d := f.open[id]
	switch k := kind.String(); {
	case k != "Refuse" && k != "Lose" && k != "ConfirmRelease":
	case d == nil:
		s.t.Fatalf("process %d: request %d is answered again by %v: %s", f.n, id, kind, s)
	case k == "Refuse" && why == requests.NotAcquired && !d.Try:
		s.t.Fatalf("process %d: request %d is no try, and is refused as one: %s", f.n, id, s)
	case k == "ConfirmRelease" && d.state != "leaving", k == "Lose" && d.state != "held":
		s.t.Fatalf("process %d: request %d is %s and is answered by %v: %s", f.n, id, d.state, kind, s)
	default:
		delete(f.open, id)
	}
}

// live calls each with the requests that are granted by nodes that exist, except for but.
func (s *stack) live(but *ownerRequest, each func(*ownerRequest)) {
	for _, f := range s.fronts {
		for _, d := range f.open {
			if d != but && d.state == "held" && s.exist(f, d) {
				each(d)
			}
		}
	}
}

// exist reports whether all nodes of a granted request do.
func (s *stack) exist(f *front, d *ownerRequest) bool {
	all, l := true, f.layers[len(f.layers)-1]
	for _, x := range d.nodes {
		all = s.there(l, x) && all
	}
	return all
}

func (s *stack) request(f *front, d ownerRequest) *ownerRequest {
	s.ids++
	d.ID, d.state = s.ids, "waiting"
	f.open[d.ID] = &d
	return &d
}

func (s *stack) pick(state string) (*front, *ownerRequest) {
	f := rapid.SampledFrom(s.fronts).Draw(s.t, "process")
	var some []*ownerRequest
	for _, id := range slices.Sorted(maps.Keys(f.open)) {
		if f.open[id].state == state {
			some = append(some, f.open[id])
		}
	}
	if len(some) == 0 {
		s.t.Skip("no such request")
	}
	return f, rapid.SampledFrom(some).Draw(s.t, "request")
}

func (s *stack) leave(f *front, d *ownerRequest, by func(*front, requests.ID)) {
	if d.state == "held" {
		d.state = "leaving"
	}
	by(f, d.ID)
}

// deliver delivers the next message down or up, and reports whether there was one.
func (s *stack) deliver(f *front, l *layer, down bool) bool {
	switch {
	case down && len(l.down) > 0:
		next := l.down[0]
		l.down = l.down[1:]
		next()
	case !down && len(l.up) > 0:
		next := l.up[0]
		l.up = l.up[1:]
		s.hear(f, l, next)
	default:
		return false
	}
	return true
}

func (s *stack) drain() {
	for rounds, busy := 0, true; busy; rounds++ {
		if busy = false; rounds > 1000 {
			s.t.Fatalf("messages go on for ever: %s", s)
		}
		for _, w := range s.worlds {
			w.drain()
		}
		for _, f := range s.fronts {
			for _, l := range f.layers {
				for s.deliver(f, l, true) || s.deliver(f, l, false) {
					busy = true
				}
			}
		}
	}
	if !s.meddling {
		s.atRest()
	}
}

func (s *stack) String() string {
	text := ""
	for _, f := range s.fronts {
		for _, id := range slices.Sorted(maps.Keys(f.open)) {
			text += fmt.Sprintf("\nprocess %d: %+v", f.n, *f.open[id])
		}
	}
	for _, w := range s.worlds {
		text += "\n" + w.String()
	}
	return text
}

func (s *stack) expire() {
	for _, w := range s.worlds {
		w.actions()["expire"](s.t)
	}
}

func (s *stack) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"acquire":         func(t *rapid.T) { s.acquire(t, rapid.SampledFrom(s.fronts).Draw(t, "process")) },
		"cancel":          func(*rapid.T) { f, d := s.pick("waiting"); s.leave(f, d, s.cancel) },
		"give up a grant": func(*rapid.T) { f, d := s.pick("held"); s.leave(f, d, s.cancel) },
		"release":         func(*rapid.T) { f, d := s.pick("held"); s.leave(f, d, s.release) },
		"message": func(t *rapid.T) {
			f := rapid.SampledFrom(s.fronts).Draw(t, "process")
			s.deliver(f, rapid.SampledFrom(f.layers).Draw(t, "State"), rapid.Bool().Draw(t, "down"))
		},
		"lose the session": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			f := rapid.SampledFrom(s.fronts).Draw(t, "process")
			for _, l := range f.layers {
				l.w.loseSession(l.p)
			}
		},
		"expire": func(*rapid.T) { s.expire() },
		"drain":  func(*rapid.T) { s.drain() },
		"":       func(*rapid.T) {},
	}
	s.traffic = []string{"message", "message"}
	for i, w := range s.worlds {
		s.traffic = append(s.traffic, fmt.Sprintf("%d: serve", i), fmt.Sprintf("%d: answer", i), fmt.Sprintf("%d: read behind", i), fmt.Sprintf("%d: follower", i))
		for name, action := range w.actions() {
			switch name {
			case "serve", "read behind", "follower", "search", "answer", "event", "the empty directory is collected", "guest comes", "plain guest comes", "guest goes", "disturb the connection", "another client deletes nodes", "tick":
				actions[fmt.Sprintf("%d: %s", i, name)] = action
			}
		}
	}
	return actions
}

// run makes many requests, delivers many messages, and sometimes makes trouble.
func (s *stack) run(actions map[string]func(*rapid.T)) {
	do := func(names []string, most int) func(*rapid.T) {
		return func(t *rapid.T) {
			for range rapid.IntRange(1, most).Draw(t, "actions") {
				machinetest.Act(t, actions[rapid.SampledFrom(names).Draw(t, "action")])
			}
		}
	}
	s.t.Repeat(map[string]func(*rapid.T){
		"owners":  do([]string{"acquire", "acquire", "acquire", "release", "cancel", "give up a grant"}, 3),
		"traffic": do(s.traffic, 30),
		"trouble": do(slices.Sorted(maps.Keys(actions)), 3),
	})
}

// finish has all owners leave. Every request must end, and nothing may be left.
func (s *stack) finish() {
	for range 1000 {
		s.expire()
		for _, w := range s.worlds {
			for _, p := range w.procs {
				if s.meddling { // a Tick notices that a node is gone that is not watched
					w.tick(p)
				}
			}
			for _, n := range w.sorted() {
				if n.proc == nil {
					w.del(n.name)
				}
			}
		}
		s.drain()
		open := 0
		for _, f := range s.fronts {
			for _, id := range slices.Sorted(maps.Keys(f.open)) {
				open++
				if d := f.open[id]; d.state == "held" {
					s.leave(f, d, s.release)
				}
			}
			if f.timing {
				f.timing = false
				s.stepLocalQueue(f, (*localqueue.Queue).IdleTimedOut)
				open++
			}
		}
		if open == 0 {
			break
		}
	}
	s.drain()
	for _, f := range s.fronts {
		for _, l := range f.layers {
			if p := l.p; len(f.open)+len(p.open)+p.state.requests.Len()+len(p.state.owners) > 0 {
				s.t.Fatalf("process %d: %v and below %v are open, owners %v: %s", f.n, f.open, p.open, p.state.owners, s)
			}
		}
		s.end(f)
	}
	for _, w := range s.worlds {
		w.finish()
	}
}

package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A world is a directory on a server, processes whose States run against it, and
// contenders of other kinds that come and go. Requests in flight are served in any
// order, as concurrent ones are; answers overtake each other; but an event never
// comes later than an answer that the server gave after it.
type world struct {
	t       *rapid.T
	rule    Rule
	nodes   map[string]*node
	nextSeq int64
	zxid    int64
	home    int64 // czxid of the directory, 0 while there is none
	procs   []*process
	ids     ID
	guests  int
	token   [2]int64 // of the last grant
}

type node struct {
	name  string
	seq   int64
	kind  Kind
	czxid int64
	proc  *process // nil: a guest
	epoch uint64
}

type process struct {
	n        int
	state    *State
	epoch    uint64
	up       bool
	watches  map[string]bool
	requests []Effect // sent to the server, not served
	events   []Wake
	emitted  int // events ever
	heard    int // events delivered
	answers  []answer
	open     map[ID]string // requests: waiting, held, released
	nodeOf   map[ID]string
	leaving  map[string]bool
}

type answer struct {
	event Event
	after int // events that come first
}

func newWorld(t *rapid.T, rule Rule, processes int) *world {
	w := &world{t: t, rule: rule, nodes: map[string]*node{}, zxid: 100}
	w.home, w.nextSeq = 1, rapid.Int64Range(0, 3).Draw(t, "first sequence number")
	for n := range processes {
		p := &process{n: n, state: NewState(rule, Incarnation{byte(n)}), open: map[ID]string{}, nodeOf: map[ID]string{}}
		w.procs = append(w.procs, p)
		w.connect(p)
	}
	return w
}

func (w *world) connect(p *process) {
	p.epoch++
	p.up = true
	p.watches, p.requests, p.events, p.answers = map[string]bool{}, nil, nil, nil
	p.heard, p.emitted = 0, 0
	p.leaving = map[string]bool{}
	w.step(p, Session{Epoch: p.epoch, State: Connected})
}

func (w *world) step(p *process, e Event) {
	for _, f := range slices.Clone(step(p.state, e)) {
		w.perform(p, f)
	}
}

func (w *world) perform(p *process, f Effect) {
	switch f.Do {
	case DoCreate, DoList, DoWatch, DoDelete:
		if f.Do == DoDelete {
			p.leaving[f.Node] = true
		}
		p.requests = append(p.requests, f)
	case DoGrant:
		if p.open[f.ID] != "waiting" {
			w.t.Fatalf("process %d: request %d is granted but was %q", p.n, f.ID, p.open[f.ID])
		}
		p.open[f.ID], p.nodeOf[f.ID] = "held", f.Node
		w.checkGrant(p, f)
	case DoRefuse:
		if p.open[f.ID] == "" {
			w.t.Fatalf("process %d: request %d is refused but was not open", p.n, f.ID)
		}
		delete(p.open, f.ID)
	case DoLose:
		if p.open[f.ID] != "held" {
			w.t.Fatalf("process %d: request %d is lost but was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.open, f.ID)
	case DoReleased:
		if p.open[f.ID] != "released" {
			w.t.Fatalf("process %d: request %d is released but was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.open, f.ID)
	}
}

// sorted is the queue as the server has it, slow and plain.
func (w *world) sorted() []*node {
	var list []*node
	for _, n := range w.nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *node) int { return int(a.seq - b.seq) })
	return list
}

// verdict is the reference: count those ahead that block, leaving out nodes that
// their process has given up already.
func (w *world) verdict(name string) Verdict {
	ahead := 0
	me := w.nodes[name]
	if me == nil {
		return Gone
	}
	for _, n := range w.sorted() {
		if n.seq >= me.seq {
			break
		}
		if n.proc.gaveUp(n) {
			continue
		}
		if w.rule.BlockedBy[me.kind].Has(n.kind) {
			ahead++
		}
	}
	if ahead < w.rule.Permits {
		return Held
	}
	return Waiting
}

// gaveUp tells that nobody holds by the node, or ever will.
func (p *process) gaveUp(n *node) bool {
	if p == nil || n.epoch != p.epoch {
		return false
	}
	serial, _ := p.state.in.serial(n.name)
	c := p.state.ours[serial]
	return p.leaving[n.name] || c != nil && c.stage == abandoned
}

func (w *world) checkGrant(p *process, f Effect) {
	if v := w.verdict(f.Node); v != Held {
		w.t.Fatalf("process %d: request %d is granted by %s, but its verdict is %d: %s", p.n, f.ID, f.Node, v, w)
	}
	if w.rule.Permits > 1 || len(w.rule.Markers) > 1 {
		return
	}
	if t := [2]int64{f.Czxid, int64(f.Step)}; slices.Compare(t[:], w.token[:]) < 0 {
		w.t.Fatalf("process %d: token %v after %v", p.n, t, w.token)
	} else {
		w.token = t
	}
}

func (w *world) String() string {
	s := ""
	for _, n := range w.sorted() {
		s += fmt.Sprintf("\n  %s", n.name)
		if n.proc != nil {
			s += fmt.Sprintf(" process %d epoch %d of %d leaving %v", n.proc.n, n.epoch, n.proc.epoch, n.proc.leaving[n.name])
		}
	}
	return s
}

// ---- the server

func (w *world) add(prefix string, kind Kind, p *process) *node {
	n := &node{name: fmt.Sprintf("%s%010d", prefix, w.nextSeq), seq: w.nextSeq, kind: kind, czxid: w.zxid, proc: p}
	if p != nil {
		n.epoch = p.epoch
	}
	w.nextSeq++
	w.nodes[n.name] = n
	return n
}

func (w *world) del(name string) {
	if w.nodes[name] == nil {
		return
	}
	w.zxid++
	delete(w.nodes, name)
	for _, p := range w.procs {
		if p.watches[name] {
			delete(p.watches, name)
			p.events = append(p.events, Wake{Epoch: p.epoch, Node: name, Deleted: true})
			p.emitted++
		}
	}
}

// makeDirectory makes it if it is missing; its numbers begin at 0.
func (w *world) makeDirectory() {
	if w.home == 0 {
		w.zxid++
		w.home, w.nextSeq = w.zxid, 0
	}
}

func (w *world) names() []string {
	if w.home == 0 {
		return nil
	}
	names := []string{"unrelated"}
	for name := range w.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// serve executes one of the requests in flight; creates go several at a time.
func (w *world) serve(p *process, i int, batch bool) {
	f := p.requests[i]
	p.requests = slices.Delete(p.requests, i, i+1)
	switch f.Do {
	case DoCreate:
		creates := []Effect{f}
		for i := 0; batch && i < len(p.requests); {
			if p.requests[i].Do == DoCreate {
				creates = append(creates, p.requests[i])
				p.requests = slices.Delete(p.requests, i, i+1)
			} else {
				i++
			}
		}
		w.create(p, creates)
	case DoList:
		p.reply(Listed{Epoch: p.epoch, Serial: f.Serial, Children: w.names(), Directory: w.home})
	case DoWatch:
		var gone []string
		for _, name := range f.Nodes {
			if w.nodes[name] == nil {
				gone = append(gone, name)
			} else {
				p.watches[name] = true
			}
		}
		p.reply(Watched{Epoch: p.epoch, Serial: f.Serial, Gone: gone})
	case DoDelete:
		w.del(f.Node)
		p.reply(Deleted{Serial: f.Serial})
	}
}

func (w *world) create(p *process, creates []Effect) {
	w.makeDirectory()
	w.zxid++
	others := len(w.nodes)
	blind := rapid.IntRange(0, 4).Draw(w.t, "blind") == 0
	for step, f := range creates {
		kind := Exclusive
		if _, k, ok := Parse(f.Node + "0000000000"); ok {
			kind = k
		}
		n := w.add(f.Node, kind, p)
		e := Created{Epoch: p.epoch, Serial: f.Serial, Node: n.name, Czxid: n.czxid, Step: uint32(step), Others: others, Directory: w.home}
		if blind {
			e.Others, e.Children = -1, w.names()
		}
		p.reply(e)
	}
}

func (p *process) reply(e Event) { p.answers = append(p.answers, answer{e, p.emitted}) }

func (w *world) hear(p *process) {
	e := p.events[0]
	p.events = p.events[1:]
	p.heard++
	w.step(p, e)
}

func (w *world) deliver(p *process, i int) {
	a := p.answers[i]
	p.answers = slices.Delete(p.answers, i, i+1)
	for p.heard < a.after {
		w.hear(p)
	}
	w.step(p, a.event)
}

// drain lets everything in flight arrive, then nobody may sleep who could hold.
func (w *world) drain() {
	for busy := true; busy; {
		busy = false
		for _, p := range w.procs {
			for len(p.requests) > 0 {
				w.serve(p, 0, false)
				busy = true
			}
			for len(p.events) > 0 {
				w.hear(p)
				busy = true
			}
			for len(p.answers) > 0 {
				w.deliver(p, 0)
				busy = true
			}
		}
	}
	for _, p := range w.procs {
		if !p.up {
			continue
		}
		for _, c := range p.state.waiting {
			if v := w.verdict(c.name); v == Held {
				w.t.Fatalf("process %d: %s sleeps but may hold: %s", p.n, c.name, w)
			}
		}
	}
}

// ---- what happens

func (w *world) proc() *process { return rapid.SampledFrom(w.procs).Draw(w.t, "process") }

// pick is one of a process's requests in a certain state.
func (w *world) pick(p *process, state string) ID {
	var ids []ID
	for id, s := range p.open {
		if s == state {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		w.t.Skip("no such request")
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(w.t, "request")
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			p := w.proc()
			w.ids++
			p.open[w.ids] = "waiting"
			w.step(p, Acquire{
				ID:    w.ids,
				Owner: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "owner"),
				Kind:  Kind(rapid.IntRange(0, len(w.rule.Markers)-1).Draw(t, "kind")),
				Try:   rapid.IntRange(0, 5).Draw(t, "try") == 0,
			})
		},
		"cancel": func(*rapid.T) {
			p := w.proc()
			w.step(p, Cancel{ID: w.pick(p, "waiting"), Why: Cancelled})
		},
		"release": func(*rapid.T) {
			p := w.proc()
			id := w.pick(p, "held")
			p.open[id] = "released"
			w.step(p, Release{ID: id})
		},
		"serve": func(t *rapid.T) {
			p := w.proc()
			if !p.up || len(p.requests) == 0 {
				t.Skip("nothing in flight")
			}
			w.serve(p, rapid.IntRange(0, len(p.requests)-1).Draw(t, "request"), rapid.Bool().Draw(t, "batch"))
		},
		"answer": func(t *rapid.T) {
			p := w.proc()
			if len(p.answers) == 0 {
				t.Skip("no answer")
			}
			w.deliver(p, rapid.IntRange(0, len(p.answers)-1).Draw(t, "answer"))
		},
		"event": func(t *rapid.T) {
			p := w.proc()
			if len(p.events) == 0 {
				t.Skip("no event")
			}
			w.hear(p)
		},
		"the empty directory is collected": func(t *rapid.T) {
			if len(w.nodes) > 0 {
				t.Skip("not empty")
			}
			w.home = 0
		},
		"guest comes": func(t *rapid.T) {
			w.makeDirectory()
			w.zxid++
			w.guests++
			marker := rapid.SampledFrom([]string{"-lock-", "__lock__"}).Draw(t, "marker")
			w.add(fmt.Sprintf("guest%d%s", w.guests, marker), Exclusive, nil)
		},
		"guest goes": func(t *rapid.T) {
			var guests []string
			for _, n := range w.sorted() {
				if n.proc == nil {
					guests = append(guests, n.name)
				}
			}
			if len(guests) == 0 {
				t.Skip("no guest")
			}
			w.del(rapid.SampledFrom(guests).Draw(t, "guest"))
		},
		"disturb the connection": func(*rapid.T) {
			p := w.proc()
			w.step(p, Session{Epoch: p.epoch, State: Suspended})
			// Events are lost with the connection, and watches with them.
			p.events, p.watches = nil, map[string]bool{}
			p.heard = p.emitted
			w.step(p, Session{Epoch: p.epoch, State: Connected})
		},
		"lose the session": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			p := w.proc()
			w.step(p, Session{Epoch: p.epoch, State: Lost})
			w.connect(p) // the old session's nodes are still there
		},
		"expire": func(*rapid.T) {
			for _, n := range w.sorted() {
				if n.proc != nil && n.epoch < n.proc.epoch {
					w.del(n.name)
				}
			}
		},
		"tick":  func(*rapid.T) { w.step(w.proc(), Tick{}) },
		"drain": func(*rapid.T) { w.drain() },
		"":      func(*rapid.T) {},
	}
}

// finish makes everybody leave: every request must end, no node and no State's
// memory of one may be left.
func (w *world) finish() {
	for range 1000 {
		w.actions()["expire"](w.t)
		for _, n := range w.sorted() {
			if n.proc == nil {
				w.del(n.name)
			}
		}
		w.drain()
		open := 0
		for _, p := range w.procs {
			for id, s := range p.open {
				open++
				if s == "held" {
					p.open[id] = "released"
					w.step(p, Release{ID: id})
				}
			}
		}
		if open == 0 {
			break
		}
	}
	w.drain()
	if len(w.nodes) > 0 {
		w.t.Fatalf("nodes are left: %s", w)
	}
	for _, p := range w.procs {
		for id, s := range p.open {
			w.t.Fatalf("process %d: request %d is still %s", p.n, id, s)
		}
		if s := p.state; len(s.list) > s.foreign || len(s.waiting)+len(s.unsent)-s.left+len(s.ours) > 0 || s.tries != 0 {
			w.t.Fatalf("process %d remembers %d listed, %d foreign, %d waiting, %d unsent, %d ours, %d tries", p.n, len(s.list), s.foreign, len(s.waiting), len(s.unsent), len(s.ours), s.tries)
		}
	}
}

func testHistories(t *testing.T, rule Rule) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rule, rapid.IntRange(1, 3).Draw(t, "processes"))
		t.Repeat(w.actions())
		w.finish()
	})
}

func TestHistoriesOfAMutex(t *testing.T) { testHistories(t, Mutex()) }

func TestHistoriesOfASemaphore(t *testing.T) {
	for _, permits := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) { testHistories(t, Semaphore(permits)) })
	}
}

func TestHistoriesOfAReadWriteLock(t *testing.T) { testHistories(t, ReadWrite()) }

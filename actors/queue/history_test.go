package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"
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
	births  int64
	token   [2]int64 // of the last grant
	marks   marks
	wishes  wishes
}

type node struct {
	name  string
	seq   int64
	born  int64 // its place in the queue, whatever its number
	kind  Kind
	czxid int64
	plain bool     // its name has no sequence number; seq is that of its creation
	proc  *process // nil: a guest
	epoch uint64
}

type process struct {
	n        int
	state    *State
	permits  int // as this process has heard
	epoch    uint64
	up       bool
	watches  map[string]bool
	outlook  bool        // the directory is watched
	curious  map[ID]bool // who asked to be told that others wait, and was not
	requests []Effect    // sent to the server, not served
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
	w := &world{t: t, rule: rule, nodes: map[string]*node{}, zxid: 100,
		marks: marks{waited: map[string]bool{}}, wishes: wishes{map[string]bool{}, map[string]bool{}, map[ID]bool{}}}
	w.home, w.nextSeq = 1, rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1<<31-1<<20-3, 1<<31-1<<20),
		rapid.Int64Range(math.MaxInt32-3, math.MaxInt32)).Draw(t, "first sequence number")
	for n := range processes {
		p := &process{n: n, permits: rule.Permits, state: NewState(rule, Incarnation{byte(n)}), open: map[ID]string{}, curious: map[ID]bool{}, nodeOf: map[ID]string{}}
		w.procs = append(w.procs, p)
		w.connect(p)
	}
	return w
}

func (w *world) connect(p *process) {
	p.epoch++
	p.up = true
	p.watches, p.outlook, p.requests, p.events, p.answers = map[string]bool{}, false, nil, nil, nil
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
	case DoRevoke:
		w.told(p, f.ID)
	case DoRestore:
		p.requests = append(p.requests, f)
	case DoDelay:
		w.marks.delays = append(w.marks.delays, delaying{p, f.Serial, f.Node})
	case DoCreate, DoList, DoWatch, DoDelete, DoMark, DoRemark, DoClear, DoLook:
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
	case DoContended:
		if p.open[f.ID] != "held" || !p.curious[f.ID] {
			w.t.Fatalf("process %d: request %d is told of others, was %q", p.n, f.ID, p.open[f.ID])
		}
		delete(p.curious, f.ID)
	}
}

// sorted is the queue as the server has it, slow and plain.
func (w *world) sorted() []*node {
	var list []*node
	for _, n := range w.nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *node) int { return int(a.born - b.born) })
	return list
}

// holds is the reference: count those ahead that block, leaving out nodes that
// their process has given up already. Nodes without a number, if they count, are
// ahead of all that came later; the others may have missed them, or may not.
func (w *world) holds(name string, missed bool) bool {
	ahead := 0
	me := w.nodes[name]
	if me == nil {
		return false
	}
	for _, n := range w.sorted() {
		switch {
		case n.plain && (!w.rule.Strangers || missed && n.born > me.born):
		case !n.plain && n.born >= me.born:
		case n.proc.gaveUp(n):
		case w.rule.BlockedBy[me.kind].Has(w.kindFor(n, me)):
			ahead++
		}
	}
	permits := w.rule.Permits
	if me.proc != nil {
		permits = me.proc.permits
	}
	return ahead < permits
}

// kindFor is the node's kind as another one's process sees it.
func (w *world) kindFor(n, me *node) Kind {
	if w.rule.own() && n.kind == Own && (n.proc != me.proc || n.epoch != me.epoch) {
		return Exclusive
	}
	return n.kind
}

// gaveUp tells that nobody holds by the node, or ever will.
func (p *process) gaveUp(n *node) bool {
	if p == nil || n.epoch != p.epoch {
		return false
	}
	serial, _ := p.state.in.serial(n.name)
	c := p.state.ours[serial]
	return p.leaving[n.name] || c != nil && (c.stage == abandoned || c.stage == leaving)
}

func (w *world) checkGrant(p *process, f Effect) {
	if !w.holds(f.Node, true) {
		w.t.Fatalf("process %d: request %d is granted by %s, which does not hold: %s", p.n, f.ID, f.Node, w)
	}
	if w.rule.Delay && w.marks.by != f.Node {
		w.t.Fatalf("process %d: request %d is granted by %s, but the mark is of %q", p.n, f.ID, f.Node, w.marks.by)
	}
	if w.rule.Permits > 1 || w.rule.Strangers {
		return
	}
	for _, other := range w.procs {
		for id, node := range other.nodeOf {
			if other.open[id] == "held" && w.conflict(w.nodes[f.Node], w.nodes[node]) {
				w.t.Fatalf("process %d: request %d is granted by %s while %s is held: %s", p.n, f.ID, f.Node, node, w)
			}
		}
	}
	if len(w.rule.Markers) > 1 {
		return
	}
	if t := [2]int64{f.Czxid, int64(f.Step)}; slices.Compare(t[:], w.token[:]) < 0 {
		w.t.Fatalf("process %d: token %v after %v", p.n, t, w.token)
	} else {
		w.token = t
	}
}

// conflict tells that two may not hold at a time: the earlier blocks the later. An owner
// may hold two nodes of one place in the queue.
func (w *world) conflict(a, b *node) bool {
	switch {
	case a == nil || b == nil || a.born == b.born:
		return false
	case a.born < b.born:
		a, b = b, a
	}
	return w.rule.BlockedBy[a.kind].Has(w.kindFor(b, a))
}

func (w *world) guestMarkers() []string {
	if w.rule.Private {
		return w.rule.Markers
	}
	return []string{"-lock-", "__lock__", "-__WRIT__", "-__READ__"}
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
	w.births++
	n := &node{name: fmt.Sprintf("%s%010d", prefix, w.nextSeq), seq: w.nextSeq, born: w.births, kind: kind, czxid: w.zxid, proc: p}
	if p != nil {
		n.epoch = p.epoch
	}
	if n.plain = prefix == "plain"; n.plain {
		n.name = fmt.Sprintf("%s%d", prefix, w.zxid)
	}
	// Also for those who do not show it. It sticks at the end: see recipes on ZooKeeper >= 3.6.
	w.nextSeq = min(w.nextSeq+1, math.MaxInt32)
	w.nodes[n.name] = n
	w.changed()
	return n
}

func (w *world) del(name string) {
	if w.nodes[name] == nil {
		return
	}
	w.zxid++
	delete(w.nodes, name)
	w.changed()
	for _, p := range w.procs {
		if p.watches[name] {
			delete(p.watches, name)
			p.events = append(p.events, Wake{Epoch: p.epoch, Node: name, Deleted: true})
			p.emitted++
		}
	}
}

// changed fires the watches on the directory.
func (w *world) changed() {
	for _, p := range w.procs {
		if p.outlook {
			p.outlook = false
			p.events = append(p.events, Wake{Epoch: p.epoch})
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
	var names []string
	if !w.rule.Strangers {
		names = append(names, "unrelated")
	}
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
		if f.Beside != "" {
			w.createBeside(p, f)
			return
		}
		creates := []Effect{f}
		for i := 0; batch && i < len(p.requests); {
			if p.requests[i].Do == DoCreate && p.requests[i].Beside == "" {
				creates = append(creates, p.requests[i])
				p.requests = slices.Delete(p.requests, i, i+1)
			} else {
				i++
			}
		}
		w.create(p, creates)
	case DoList:
		p.outlook = p.outlook || f.Watch && w.home != 0
		l := Listed{Epoch: p.epoch, Serial: f.Serial, Children: w.names(), Directory: w.home}
		for _, name := range l.Children {
			if n := w.nodes[name]; f.WithCzxids && n != nil {
				l.Czxids = append(l.Czxids, n.czxid)
			} else if f.WithCzxids {
				l.Czxids = append(l.Czxids, 1)
			}
		}
		p.reply(l)
	case DoWatch:
		var gone []string
		for _, name := range f.Nodes {
			if w.nodes[name] == nil {
				gone = append(gone, name)
			} else {
				p.watches[name] = true
			}
		}
		p.reply(Watched{Epoch: p.epoch, Serial: f.Serial, Gone: gone, Data: w.data(f)})
	case DoRestore:
		w.write(f.Node, false)
	case DoMark, DoRemark, DoClear:
		w.transact(p, f)
	case DoLook:
		w.look(p, f)
	case DoDelete:
		w.del(f.Node)
		if f.Reset && len(w.nodes) == 0 {
			w.home = 0
		}
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
		if _, k, ok := w.rule.Parse(f.Node + "0000000000"); ok {
			kind = k
		}
		if w.rule.own() {
			kind = Own
		}
		n := w.add(f.Node, kind, p)
		e := Created{Epoch: p.epoch, Serial: f.Serial, Node: n.name, Czxid: n.czxid, Step: uint32(step), Others: others, Directory: w.home}
		if blind {
			e.Others, e.Children = -1, w.names()
		}
		p.reply(e)
	}
}

func (w *world) createBeside(p *process, f Effect) {
	leader := w.nodes[f.Beside]
	if leader == nil {
		p.reply(Failed{Epoch: p.epoch, Serial: f.Serial, Why: NotHeld})
		return
	}
	w.zxid++
	_, kind, _ := w.rule.Parse(f.Node)
	w.nodes[f.Node] = &node{name: f.Node, seq: leader.seq, born: leader.born, kind: kind, czxid: w.zxid, proc: p, epoch: p.epoch}
	p.reply(Created{Epoch: p.epoch, Serial: f.Serial, Node: f.Node, Czxid: w.zxid, Others: -1, Children: w.names(), Directory: w.home})
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
		for len(w.marks.delays) > 0 {
			w.elapse()
			busy = true
		}
	}
	w.checkTold()
	for _, p := range w.procs {
		if !p.up {
			continue
		}
		for _, c := range p.state.inLine() {
			if w.holds(c.name, false) {
				w.t.Fatalf("process %d: %s sleeps but may hold: %s", p.n, c.name, w)
			}
			if c.hasTry() {
				w.t.Fatalf("process %d: %s waits, though it would rather not: %s", p.n, c.name, w)
			}
		}
		if p.outlook && !w.present(p) {
			w.t.Fatalf("process %d watches the directory, where it has no node whose end would end that: %s", p.n, w)
		}
		for id := range p.curious {
			if p.open[id] == "held" && w.contended(p, p.nodeOf[id]) {
				w.t.Fatalf("process %d: request %d holds and was not told that others wait: %s", p.n, id, w)
			}
		}
	}
}

// present tells that the process has a node in the directory.
func (w *world) present(p *process) bool {
	for _, n := range w.nodes {
		if n.proc == p && n.epoch == p.epoch {
			return true
		}
	}
	return false
}

// contended is the reference: somebody else's contender waits, behind a node that
// blocks it.
func (w *world) contended(p *process, name string) bool {
	me := w.nodes[name]
	for _, n := range w.nodes {
		if n.proc != p && !n.plain && !n.proc.gaveUp(n) && n.born > me.born && w.rule.BlockedBy[n.kind].Has(me.kind) && !w.holds(n.name, true) {
			return true
		}
	}
	return false
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

// guest picks one whose name has the marker.
func (w *world) guest(possible bool, marker string) string {
	var guests []string
	for _, n := range w.sorted() {
		if possible && n.proc == nil && strings.Contains(n.name, marker) {
			guests = append(guests, n.name)
		}
	}
	if len(guests) == 0 {
		w.t.Skip("no such guest")
	}
	return rapid.SampledFrom(guests).Draw(w.t, "guest")
}

// own tells the rule whose contenders of one process do not block each other.
func (r Rule) own() bool { return !r.Private && len(r.Markers) > int(Own) }

func (w *world) kinds() (all []Kind) {
	if w.rule.own() {
		return []Kind{Own}
	}
	for k := range w.rule.Markers {
		all = append(all, Kind(k))
	}
	return all
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			p := w.proc()
			w.ids++
			p.open[w.ids] = "waiting"
			tell := rapid.IntRange(0, 2).Draw(t, "tell") == 0 && !w.rule.Strangers
			if tell {
				p.curious[w.ids] = true
			}
			owners := []string{"", "", "a", "b"}
			if w.rule.Strangers {
				owners = owners[:1] // its permits may have become too few for a re-entry
			}
			w.step(p, Acquire{
				ID:    w.ids,
				Owner: rapid.SampledFrom(owners).Draw(t, "owner"),
				Kind:  rapid.SampledFrom(w.kinds()).Draw(t, "kind"),
				Tell:  tell,
				Try:   rapid.IntRange(0, 5).Draw(t, "try") == 0,
				Data:  []byte("data"), Revocable: true,
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
			w.changed()
		},
		"guest comes": func(t *rapid.T) {
			w.makeDirectory()
			w.zxid++
			w.guests++
			marker := rapid.SampledFrom(w.guestMarkers()).Draw(t, "marker")
			_, kind, _ := w.rule.Parse(marker + "0000000000")
			w.add(fmt.Sprintf("guest%d%s", w.guests, marker), kind, nil)
		},
		"guest downgrades": func(t *rapid.T) {
			// (Where numbers are used up, Curator's downgrade gives its place away.)
			writer := w.guest(!w.rule.Private && w.rule.heirs(Exclusive) != 0 && w.nextSeq < 1<<31-1<<20, "__WRIT__")
			name := strings.Replace(writer, "-__WRIT__", "x-__READ__", 1)
			w.zxid++
			w.nodes[name] = &node{name: name, seq: w.nodes[writer].seq, born: w.nodes[writer].born, kind: Shared, czxid: w.zxid}
			if rapid.Bool().Draw(t, "goes at once") {
				w.del(writer)
			}
		},
		"plain guest comes": func(t *rapid.T) {
			w.makeDirectory()
			w.zxid++
			w.add("plain", Exclusive, nil)
		},
		"resize": func(t *rapid.T) {
			if !w.rule.Strangers {
				t.Skip("not that kind of lock")
			}
			p := w.proc()
			p.permits = rapid.IntRange(0, 4).Draw(t, "permits")
			w.step(p, Resize{p.permits})
		},
		"guest goes": func(t *rapid.T) {
			w.del(w.guest(true, ""))
		},
		"disturb the connection": func(*rapid.T) {
			p := w.proc()
			w.step(p, Session{Epoch: p.epoch, State: Suspended})
			// Events are lost with the connection, and watches with them.
			p.events, p.watches, p.outlook = nil, map[string]bool{}, false
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
		"revoke": func(t *rapid.T) {
			nodes := w.sorted()
			if len(nodes) == 0 {
				t.Skip("no node")
			}
			w.write(rapid.SampledFrom(nodes).Draw(t, "node").name, true)
		},
		"tick": func(*rapid.T) {
			p := w.proc()
			p.state.Rest()
			w.step(p, Tick{})
		},
		"drain": func(*rapid.T) { w.drain() },
		"":      func(*rapid.T) {},
	}
}

// finish makes everybody leave: every request must end, no node and no State's
// memory of one may be left.
func (w *world) finish() {
	for range 1000 {
		w.actions()["expire"](w.t)
		for _, p := range w.procs {
			if p.permits == 0 {
				p.permits = 1
				w.step(p, Resize{1})
			}
		}
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
		if s := p.state; len(s.list) > s.foreign || len(s.inLine())+len(s.unsent)-s.left+len(s.ours) > 0 || s.tries != 0 {
			w.t.Fatalf("process %d remembers %d listed, %d foreign, %d waiting, %d unsent, %d ours, %d tries", p.n, len(s.list), s.foreign, len(s.inLine()), len(s.unsent), len(s.ours), s.tries)
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

func TestHistoriesOfLeases(t *testing.T) {
	for _, permits := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) { testHistories(t, Leases(permits)) })
	}
}

func TestHistoriesOfAGate(t *testing.T) { testHistories(t, Gate()) }

func TestHistoriesOfAReadWriteLock(t *testing.T) { testHistories(t, ReadWrite()) }

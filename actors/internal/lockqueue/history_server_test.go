package lockqueue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The server of a world.

func (w *world) add(prefix string, kind queue.Kind, p *process) *worldNode {
	w.births++
	n := &worldNode{name: fmt.Sprintf("%s%010d", prefix, w.nextSeq), seq: w.nextSeq, born: w.births, kind: kind, czxid: w.zxid, proc: p}
	if p != nil {
		n.epoch = p.epoch
	}
	if n.plain = prefix == "plain"; n.plain {
		n.name = fmt.Sprintf("%s%d", prefix, w.zxid)
	}
	// The number advances also for nodes that do not show it. At the end it stays since ZooKeeper
	// 3.6, and is negative before.
	if w.nextSeq++; w.nextSeq > math.MaxInt32 {
		w.nextSeq = w.afterLast
	}
	w.put(n)
	return n
}

// meddle deletes a node of any process.
func (w *world) meddle(n *worldNode) {
	if n.proc != nil && n.epoch == n.proc.epoch {
		g := ghost{ticks: n.proc.ticks, watched: n.proc.watches[n.name], proc: n.proc, order: len(w.ghosts)}
		for _, other := range w.sorted() {
			foreign := other.proc != n.proc || other.epoch != n.epoch
			g.behind = g.behind || foreign && !other.plain && other.born < n.born && w.rule.BlockedBy[n.kind].Has(w.kindFor(other, n))
		}
		g.behind = g.behind && w.rule.Permits == 1
		if w.ghosts == nil {
			w.ghosts = map[string]ghost{}
		}
		w.ghosts[n.name] = g
	}
	w.del(n.name)
}

// makeDirectory makes it if it is missing; its numbers begin at 0.
func (w *world) makeDirectory() {
	if w.directory == 0 {
		w.zxid++
		w.nextSeq = 0
		w.setDirectory(w.zxid)
	}
}

// serve executes one of the requests in flight; creates go several at a time.
func (w *world) serve(p *process, i int, batch bool) {
	for len(p.behind) > 0 { // they were sent in one flight with their transactions
		w.readBehind(p)
	}
	f := p.requests[i]
	p.requests = slices.Delete(p.requests, i, i+1)
	switch f.Kind {
	case CreateNode:
		if f.Beside != "" {
			w.createBeside(p, f)
			return
		}
		creates, gone := []Effect{f}, map[string]bool{}
		for i := 0; batch && i < len(p.requests); {
			switch g := p.requests[i]; {
			case g.Kind == CreateNode && g.Beside == "":
				creates = append(creates, g)
			case g.Kind == DeleteNode && !g.WithDirectory && w.nodes[g.Node] != nil: // in the same transaction
				w.del(g.Node)
				gone[g.Node] = true
				w.catchUp(p)
				p.reply(Deleted{Serial: g.Serial})
			default:
				i++
				continue
			}
			p.requests = slices.Delete(p.requests, i, i+1)
		}
		w.create(p, creates, gone)
	case ListDirectory:
		p.directoryWatched = p.directoryWatched || f.Watch && p.view.directory != 0
		l := Listed{Serial: f.Serial, Children: w.names(p), Directory: p.view.directory}
		for _, name := range l.Children {
			if n := p.view.nodes[name]; f.WithCzxids && n != nil {
				l.Czxids = append(l.Czxids, n.czxid)
			} else if f.WithCzxids {
				l.Czxids = append(l.Czxids, 1)
			}
		}
		p.reply(l)
	case WatchNodes:
		var gone []string
		for _, name := range f.Nodes {
			if p.view.nodes[name] == nil {
				gone = append(gone, name)
			} else {
				p.watches[name] = true
			}
		}
		p.reply(Watched{Serial: f.Serial, Gone: gone, Data: p.data(f)})
	case RestoreData:
		w.write(f.Node, false)
		w.catchUp(p)
	case CreateHeldMarker, ReplaceHeldMarker, DeleteWithHeldMarker:
		w.transact(p, f)
	case ReadHeldMarker:
		w.look(p, f)
	case DeleteNode:
		missing := w.nodes[f.Node] == nil
		w.del(f.Node)
		if f.WithDirectory && len(w.nodes) == 0 {
			w.setDirectory(0)
		}
		w.catchUp(p)
		p.reply(Deleted{Serial: f.Serial, Missing: missing})
	}
}

// create executes a transaction that has deleted the nodes that are gone.
func (w *world) create(p *process, creates []Effect, gone map[string]bool) {
	w.makeDirectory()
	w.zxid++
	b := behind{look: map[uint64]bool{}}
	answerLost := rapid.IntRange(0, 7).Draw(w.t, "answer is lost") == 0
	elsewhere := rapid.IntRange(0, 2).Draw(w.t, "creates in other directories ahead")
	ofOneRequest := w.atomicCreates && rapid.Bool().Draw(w.t, "leases of one request")
	if ofOneRequest { // they are made in the order in which they were asked for
		slices.SortFunc(creates, func(a, b Effect) int { return cmp.Compare(a.Serial, b.Serial) })
	}
	for i, f := range creates {
		step := uint32(elsewhere + i)
		if ofOneRequest {
			step = uint32(elsewhere + len(creates) - 1)
		}
		kind := queue.Exclusive
		if _, k, ok := w.rule.Parse(f.Node + "0000000000"); ok {
			kind = k
		}
		if hasProcessExclusive(w.rule) {
			kind = queue.ProcessExclusive
		}
		n := w.add(f.Node, kind, p)
		b.created = append(b.created, Created{Serial: f.Serial, Node: n.name, Generation: machinetest.GenerationAt(n.czxid), Czxid: n.czxid,
			Step: step, SameDirectory: gone[f.After]})
		b.look[f.Serial] = f.ListAfter
		if answerLost {
			p.lost = append(p.lost, unanswered{f, step})
		}
	}
	w.catchUp(p)
	if !answerLost {
		p.behind = append(p.behind, b)
	}
}

// unanswered is a create whose answer is lost, and its place in the transaction.
type unanswered struct {
	Effect
	step uint32
}

// search looks for the node of a create whose answer is lost. If it is not there, the create
// is repeated, as the bridge does.
func (w *world) search(p *process) {
	for len(p.behind) > 0 {
		w.readBehind(p)
	}
	f := p.lost[0]
	p.lost = p.lost[1:]
	w.catchUp(p) // the bridge writes before it searches
	for _, n := range w.nodes {
		if strings.HasPrefix(n.name, f.Node) && n.proc == p && n.epoch == p.epoch {
			p.reply(Created{Serial: f.Serial, Node: n.name, Generation: machinetest.GenerationAt(n.czxid), Czxid: n.czxid, Step: f.step, Directory: p.view.directory, Children: w.names(p)})
			return
		}
	}
	w.create(p, []Effect{f.Effect}, nil)
}

// behind is a transaction that was executed, and the read of the directory behind it.
type behind struct {
	created []Created
	look    map[uint64]bool
}

// readBehind executes the read, which may be later than others' transactions, and may fail.
func (w *world) readBehind(p *process) {
	b := p.behind[0]
	p.behind = p.behind[1:]
	fails := rapid.IntRange(0, 9).Draw(w.t, "read behind fails") == 0
	for _, e := range b.created {
		if !fails && !e.SameDirectory {
			e.Directory = p.view.directory
			if b.look[e.Serial] {
				e.Children = w.names(p)
			}
		}
		p.reply(e)
	}
}

func (w *world) createBeside(p *process, f Effect) {
	w.catchUp(p)
	leader := w.nodes[f.Beside]
	if leader == nil {
		p.reply(Failed{Serial: f.Serial, Reason: requests.NotHeld})
		return
	}
	w.zxid++
	_, kind, _ := w.rule.Parse(f.Node)
	w.put(&worldNode{name: f.Node, seq: leader.seq, born: leader.born, kind: kind, czxid: w.zxid, proc: p, epoch: p.epoch})
	w.catchUp(p)
	p.reply(Created{Serial: f.Serial, Node: f.Node, Generation: machinetest.GenerationAt(w.zxid), Czxid: w.zxid, Children: w.names(p), Directory: w.directory})
	p.answers[len(p.answers)-1].due = p.ticks + 1 // it is granted by, whenever it comes
}

func (p *process) reply(e Event) { p.answers = append(p.answers, answer{event: e, after: p.emitted}) }

func (w *world) hear(p *process) {
	e := p.events[0]
	p.events = p.events[1:]
	p.heard++
	if last := w.ghosts[e.Node]; e.Deleted && last.proc == p && p.state.find(e.Node) != nil {
		for name, g := range w.ghosts {
			g.warned = g.warned || g.proc == p && g.order < last.order
			w.ghosts[name] = g
		}
	}
	w.step(p, e)
}

// tick is a tick of a process. Before its second tick after a change the server shows it, and
// the events of what the server shows come before the second tick after that: a server or a
// connection that is later is given up.
func (w *world) tick(p *process) {
	w.advance(p, p.view.timely)
	p.view.timely = len(w.changes)
	for p.heard < p.timely {
		w.hear(p)
	}
	for i := len(p.answers) - 1; i >= 0; i-- {
		if i < len(p.answers) && p.answers[i].due != 0 && p.answers[i].due <= p.ticks {
			w.deliver(p, i)
		}
	}
	p.timely = p.emitted
	p.ticks++
	w.step(p, Tick{})
}

func (w *world) deliver(p *process, i int) {
	a := p.answers[i]
	p.answers = slices.Delete(p.answers, i, i+1)
	for p.heard < a.after {
		w.hear(p)
	}
	w.step(p, a.event)
}

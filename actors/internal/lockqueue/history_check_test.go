package lockqueue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/queue"
)

// sorted returns the queue as the server has it, slowly and plainly.
func (w *world) sorted() []*worldNode {
	var list []*worldNode
	for _, n := range w.nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *worldNode) int { return int(a.born - b.born) })
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
		case n.plain && (!w.rule.CountUnknown || missed && n.born > me.born):
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

// kindFor returns the node's kind as the process of another node sees it.
func (w *world) kindFor(n, me *worldNode) queue.Kind {
	if hasProcessExclusive(w.rule) && n.kind == queue.ProcessExclusive && (n.proc != me.proc || n.epoch != me.epoch) {
		return queue.Exclusive
	}
	return n.kind
}

// gaveUp reports whether no request holds by the node, or ever will.
func (p *process) gaveUp(n *worldNode) bool {
	if p == nil || n.epoch != p.epoch {
		return false
	}
	serial, _ := p.state.incarnation.serial(n.name)
	c := p.state.entries[serial]
	return p.leaving[n.name] || c != nil && (c.stage == abandoned || c.stage == leaving)
}

func (w *world) checkGrant(p *process, f Effect) {
	if g, gone := w.ghosts[f.Node]; gone {
		for id, node := range p.nodeOf {
			if node == f.Node && id != f.ID && p.open[id] == "held" {
				return // a re-entry: its owner holds by the node already
			}
		}
		if g.behind || (p.ticks-g.ticks > 2 || g.warned) && !g.watched {
			w.t.Fatalf("process %d: request %d is granted by %s, which is gone (%+v, now %d): %s", p.n, f.ID, f.Node, g, p.ticks, w)
		}
		return
	}
	if !w.holds(f.Node, true) {
		w.t.Fatalf("process %d: request %d is granted by %s, which does not hold: %s", p.n, f.ID, f.Node, w)
	}
	if w.rule.Delay && w.markers.by != f.Node {
		w.t.Fatalf("process %d: request %d is granted by %s, but the held marker is of %q", p.n, f.ID, f.Node, w.markers.by)
	}
	if w.rule.Permits > 1 || w.rule.CountUnknown {
		return
	}
	for _, other := range w.procs {
		for id, node := range other.nodeOf {
			if other.open[id] == "held" && w.conflict(w.nodes[f.Node], w.nodes[node]) {
				w.t.Fatalf("process %d: request %d is granted by %s while %s is held: %s", p.n, f.ID, f.Node, node, w)
			}
		}
	}
	if f.Generation != machinetest.GenerationAt(f.Czxid) {
		w.t.Fatalf("process %d: request %d is granted with generation %d of czxid %d", p.n, f.ID, f.Generation, f.Czxid)
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

// conflict reports whether two nodes may not be held at a time: the earlier blocks the later. An
// owner may hold two nodes of one place in the queue.
func (w *world) conflict(a, b *worldNode) bool {
	switch {
	case a == nil || b == nil || a.born == b.born:
		return false
	case a.born < b.born:
		a, b = b, a
	}
	return w.rule.BlockedBy[a.kind].Has(w.kindFor(b, a))
}

func (w *world) String() string {
	s := ""
	for _, n := range w.sorted() {
		s += fmt.Sprintf("\n  %s", n.name)
		if n.proc != nil {
			s += fmt.Sprintf(" process %d epoch %d of %d leaving %v", n.proc.n, n.epoch, n.proc.epoch, n.proc.leaving[n.name])
		}
	}
	return s + "\n" + strings.Join(w.trace, "\n")
}

// drain delivers everything in flight. Then no contender may wait that could hold.
func (w *world) drain() {
	rounds := 0
	for busy := true; busy; {
		busy = false
		if rounds++; rounds > 1000 {
			w.t.Fatalf("requests go on for ever: %s", w)
		}
		for _, p := range w.procs {
			if p.view.passed < len(w.changes) {
				w.catchUp(p)
				busy = true
			}
			for n := len(p.requests); n > 0 && len(p.requests) > 0; n-- {
				w.serve(p, 0, false)
				busy = true
			}
			for len(p.behind) > 0 {
				w.readBehind(p)
				busy = true
			}
			for len(p.lost) > 0 {
				w.search(p)
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
		for len(w.markers.delays) > 0 {
			w.elapse()
			busy = true
		}
	}
	if w.meddling && !w.quiet {
		return
	}
	if !w.meddling {
		w.checkTold()
	}
	for _, p := range w.procs {
		if !p.up {
			continue
		}
		for _, c := range p.state.waitingInOrder() {
			if w.holds(c.name, false) {
				w.t.Fatalf("process %d: %s sleeps but may hold: %s", p.n, c.name, w)
			}
			if c.hasTry() {
				w.t.Fatalf("process %d: %s waits, though it would rather not: %s", p.n, c.name, w)
			}
		}
		if w.meddling {
			continue
		}
		if p.directoryWatched && !w.present(p) {
			w.t.Fatalf("process %d watches the directory, where it has no node whose end would end that: %s", p.n, w)
		}
		for id := range p.wantsContention {
			if p.open[id] == "held" && w.contended(p, p.nodeOf[id]) {
				w.t.Fatalf("process %d: request %d holds and was not told that others wait: %s", p.n, id, w)
			}
		}
	}
}

// present reports whether the process has a node in the directory.
func (w *world) present(p *process) bool {
	for _, n := range w.nodes {
		if n.proc == p && n.epoch == p.epoch {
			return true
		}
	}
	return false
}

// contended is the reference: a contender of another process waits, behind a node that blocks it.
func (w *world) contended(p *process, name string) bool {
	me := w.nodes[name]
	for _, n := range w.nodes {
		if n.proc != p && !n.plain && !n.proc.gaveUp(n) && n.born > me.born && w.rule.BlockedBy[n.kind].Has(me.kind) && !w.holds(n.name, true) {
			return true
		}
	}
	return false
}

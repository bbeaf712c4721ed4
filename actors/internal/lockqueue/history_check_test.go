package lockqueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/queue"
)

// inOrder returns the children of the directory in the order of the queue.
func (m *model) inOrder() []*serverNode {
	return slices.SortedFunc(maps.Values(m.nodes), func(a, b *serverNode) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.czxid, b.czxid))
	})
}

// mayHold reports whether a contender may hold: the rule lets it hold beside those ahead. Children
// without a number that came later do not count, since the contender's process may have looked
// before.
func (m *model) mayHold(name string) bool { return m.holds(name, false) }

// mustHold is like mayHold, but all children without a number count, since the process must have
// seen them.
func (m *model) mustHold(name string) bool { return m.holds(name, true) }

func (m *model) holds(name string, allUnnumbered bool) bool {
	own := m.nodes[name]
	if own == nil {
		return false
	}
	blockers := 0
	for _, n := range m.inOrder() {
		switch {
		case n.unnumbered && (!m.rule.CountUnknown || !allUnnumbered && n.place > own.place):
		case !n.unnumbered && n.place >= own.place:
		case n.process.gaveUp(n):
		case m.rule.BlockedBy[own.kind].Has(m.kindSeenBy(n, own)):
			blockers++
		}
	}
	permits := m.rule.Permits
	if own.process != nil {
		permits = own.process.permits
	}
	return blockers < permits
}

// kindSeenBy returns the kind that a node has for the process of another node.
func (m *model) kindSeenBy(n, other *serverNode) queue.Kind {
	if hasProcessExclusive(m.rule) && n.kind == queue.ProcessExclusive && (n.process != other.process || n.epoch != other.epoch) {
		return queue.Exclusive
	}
	return n.kind
}

// gaveUp reports whether the node is of the process, and no request of it holds by the node or ever
// will.
func (p *process) gaveUp(n *serverNode) bool {
	if p == nil || n.epoch != p.epoch {
		return false
	}
	serial, _ := p.state.incarnation.serial(n.name)
	c := p.state.entries.at(serial)
	return p.leaving[n.name] || c != nil && (c.stage == abandoned || c.stage == leaving)
}

// checkGrant checks that a request may hold by its node, and its token.
func (m *model) checkGrant(p *process, f Effect) {
	if d, deleted := m.deleted[f.Node]; deleted {
		for id, node := range p.nodeOf {
			if node == f.Node && id != f.ID && p.open[id] == "held" {
				return // a re-entry: its owner holds by the node already
			}
		}
		if d.blocked || (p.ticks-d.ticks > 2 || d.laterKnown) && !d.watched {
			m.t.Fatalf("process %d: request %d is granted by %s, which another client has deleted (%+v, now tick %d): %s", p.n, f.ID, f.Node, d, p.ticks, m)
		}
		return
	}
	if !m.mayHold(f.Node) {
		m.t.Fatalf("process %d: request %d is granted by %s, which may not hold: %s", p.n, f.ID, f.Node, m)
	}
	if m.rule.Delay && m.heldMarker.node != f.Node {
		m.t.Fatalf("process %d: request %d is granted by %s, but the held marker names %q", p.n, f.ID, f.Node, m.heldMarker.node)
	}
	if m.rule.Permits > 1 || m.rule.CountUnknown {
		return
	}
	for _, other := range m.processes {
		for id, node := range other.nodeOf {
			if other.open[id] == "held" && m.conflict(m.nodes[f.Node], m.nodes[node]) {
				m.t.Fatalf("process %d: request %d is granted by %s while %s is held: %s", p.n, f.ID, f.Node, node, m)
			}
		}
	}
	if f.Token != machinetest.TokenAt(f.Token.Czxid, f.Token.Step) {
		m.t.Fatalf("process %d: request %d is granted with the generation of another czxid: %v", p.n, f.ID, f.Token)
	}
	if len(m.rule.Markers) > 1 {
		return
	}
	if f.Token.Compare(m.token) < 0 {
		m.t.Fatalf("process %d: token %v after %v", p.n, f.Token, m.token)
	}
	m.token = f.Token
}

// conflict reports whether the earlier of two nodes blocks the later one. An owner may hold two
// nodes with one place.
func (m *model) conflict(a, b *serverNode) bool {
	switch {
	case a == nil || b == nil || a.place == b.place:
		return false
	case a.place < b.place:
		a, b = b, a
	}
	return m.rule.BlockedBy[a.kind].Has(m.kindSeenBy(b, a))
}

func (m *model) String() string {
	s := ""
	for _, n := range m.inOrder() {
		s += fmt.Sprintf("\n  %s", n.name)
		if n.process != nil {
			s += fmt.Sprintf(" process %d epoch %d of %d leaving %v", n.process.n, n.epoch, n.process.epoch, n.process.leaving[n.name])
		}
	}
	return s + "\n" + strings.Join(m.trace, "\n")
}

// drain executes and delivers all that is in flight, and checks the model then.
func (m *model) drain() {
	rounds := 0
	for busy := true; busy; {
		busy = false
		if rounds++; rounds > 1000 {
			m.t.Fatalf("the effects do not end: %s", m)
		}
		for _, p := range m.processes {
			if p.follower.applied < len(m.changes) {
				m.catchUp(p)
				busy = true
			}
			for n := len(p.inFlight); n > 0 && len(p.inFlight) > 0; n-- {
				m.serve(p, 0, false)
				busy = true
			}
			busy = busy || len(p.reads) > 0
			m.serveReads(p)
			for len(p.unanswered) > 0 {
				m.findOrRepeatCreate(p)
				busy = true
			}
			for len(p.events) > 0 {
				m.deliverEvent(p)
				busy = true
			}
			for len(p.answers) > 0 {
				m.deliverAnswer(p, 0)
				busy = true
			}
		}
		for len(m.heldMarker.delays) > 0 {
			m.elapseDelay()
			busy = true
		}
	}
	if !m.othersDelete || m.deletionsNoticed {
		m.checkWaiting()
	}
	if !m.othersDelete {
		m.checkRevocations()
		m.checkContention()
	}
}

// checkWaiting checks that no contender waits that must hold, and no try. Nothing may be in flight.
func (m *model) checkWaiting() {
	for _, p := range m.processes {
		for _, c := range p.state.waitingInOrder() {
			if m.mustHold(c.name) {
				m.t.Fatalf("process %d: %s waits and must hold: %s", p.n, c.name, m)
			}
			if c.hasTry() {
				m.t.Fatalf("process %d: %s waits and has a try: %s", p.n, c.name, m)
			}
		}
	}
}

// checkContention checks that each holder knows of contention that has asked for that, and that no
// process watches the directory without a node in it, whose deletion would end the watch. Nothing
// may be in flight.
func (m *model) checkContention() {
	for _, p := range m.processes {
		if p.directoryWatched && !m.hasNode(p) {
			m.t.Fatalf("process %d watches the directory, where it has no node: %s", p.n, m)
		}
		for id := range p.wantsContention {
			if p.open[id] == "held" && m.contended(p, p.nodeOf[id]) {
				m.t.Fatalf("process %d: request %d holds and does not know that others wait: %s", p.n, id, m)
			}
		}
	}
}

func (m *model) hasNode(p *process) bool {
	for _, n := range m.nodes {
		if n.process == p && n.epoch == p.epoch {
			return true
		}
	}
	return false
}

// contended reports whether a contender of another process waits behind a node of the process that
// blocks it.
func (m *model) contended(p *process, name string) bool {
	own := m.nodes[name]
	for _, n := range m.nodes {
		if n.process != p && !n.unnumbered && !n.process.gaveUp(n) && n.place > own.place && m.rule.BlockedBy[n.kind].Has(own.kind) && !m.mayHold(n.name) {
			return true
		}
	}
	return false
}

package localqueue

import (
	"github.com/actorlock/actorlock/actors/queue"
)

// check runs after each event. It checks that no request waits that could hold, that no node is
// kept without a use, and that each holder knows of a revoke, whenever it was granted.
func (m *queueModel) check() {
	var holding [2]int
	for _, o := range m.open {
		if o.stage == held && !o.asked && m.revoked() {
			m.t.Fatalf("request %d holds by a revoked node and was not asked to release", o.id)
		}
		if o.ownerHolds() {
			holding[o.kind]++
		}
	}
	unused := holding[queue.Exclusive]+holding[queue.Shared] == 0
	if len(m.nodes) == 0 || m.nodes[0].stage == creating {
		switch {
		case len(m.waiting) > 0 && len(m.nodes) == 0:
			m.t.Fatal("a request waits, and no node is acquired")
		case len(m.waiting) == 0 && len(m.nodes) > 0 || !unused:
			m.t.Fatal("no request waits, and a node is acquired; or a request holds without a node")
		}
		return
	}
	first, second := m.nodes[0], &node{}
	if len(m.nodes) > 1 {
		second = m.nodes[1]
	}
	switch {
	case len(m.waiting) > 0:
		m.checkFirst(m.waiting[0].kind, holding[queue.Exclusive] > 0, unused, first, second)
	case unused && (m.contended() || m.revoked() || !m.timerRuns):
		m.t.Fatal("the node hold is kept without a use")
	}
	if second.stage == held && (first.contended || first.revoked) && !unused && holding[first.kind] == 0 && (len(m.waiting) == 0 || m.budgetUsed()) {
		m.t.Fatal("an unused node is kept")
	}
	for _, r := range m.waiting {
		if r.try && second.stage != creating {
			m.t.Fatalf("request %d waits, and is a try", r.id)
		}
	}
}

// checkFirst checks that the first request that waits, of a kind, cannot hold.
func (m *queueModel) checkFirst(kind queue.Kind, written, unused bool, first, second *node) {
	suffices := kind == first.kind || kind == queue.Shared
	needsSecond := kind != first.kind && m.rule.EntersFrom(kind).Has(first.kind)
	free := !written && (unused || kind == queue.Shared) && suffices && !m.budgetUsed()
	switch {
	case free && (!needsSecond || second.stage == held):
		m.t.Fatalf("request %d waits and could hold", m.waiting[0].id)
	case free && second.stage != creating && !m.refused:
		m.t.Fatalf("request %d waits for a second node that is not asked for", m.waiting[0].id)
	case unused && !(free && second.stage == creating):
		m.t.Fatalf("request %d waits while no request holds", m.waiting[0].id)
	}
}

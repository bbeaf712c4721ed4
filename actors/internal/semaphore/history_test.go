package semaphore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// rapid draws small numbers more often, so the first process has many requests at a time, and the
// first nodes are mostly those that another client deletes.
func (m *semaphoreModel) drawProcess() *semaphoreProcess {
	return m.processes[rapid.IntRange(0, len(m.processes)-1).Draw(m.t, "process")]
}

func (m *semaphoreModel) drawNode(below int) *semaphoreNode {
	list := m.nodes[below]
	if len(list) == 0 {
		m.t.Skip("no node")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(m.t, "node")]
}

func (m *semaphoreModel) drawRequest(p *semaphoreProcess, state string) requests.ID {
	return machinetest.Draw(m.t, p.open.In(state), "request "+state)
}

func (m *semaphoreModel) release(p *semaphoreProcess, id requests.ID) {
	p.open[id] = "released"
	p.state.Release(id)
	m.perform(p)
}

func (m *semaphoreModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			p := m.drawProcess()
			m.ids++
			multiLock := rapid.IntRange(0, 2).Draw(t, "multi-lock") == 0
			p.open[m.ids], p.permits[m.ids] = "waiting", 1
			if !multiLock {
				p.permits[m.ids] = rapid.IntRange(1, m.permits).Draw(t, "permits")
			}
			p.state.Acquire(requests.Incoming{ID: m.ids, Atomic: multiLock, Permits: p.permits[m.ids], Try: rapid.IntRange(0, 4).Draw(t, "try") == 0})
			m.perform(p)
		},
		"cancel": func(t *rapid.T) {
			p := m.drawProcess()
			p.state.Cancel(m.drawRequest(p, rapid.SampledFrom([]string{"waiting", "held"}).Draw(t, "state")), requests.Cancelled)
			m.perform(p)
		},
		"release": func(*rapid.T) {
			p := m.drawProcess()
			m.release(p, m.drawRequest(p, "held"))
		},
		"proceed":                   func(*rapid.T) { m.proceed(m.drawProcess()) },
		"the request queue answers": func(*rapid.T) { p := m.drawProcess(); m.deliver(p, queueBelow) },
		"leases answer":             func(*rapid.T) { p := m.drawProcess(); m.deliver(p, leasesBelow) },
		"start a Curator client": func(*rapid.T) {
			m.ids++
			m.nodes[queueBelow] = append(m.nodes[queueBelow], &semaphoreNode{id: m.ids})
			m.decide()
		},
		"stop a Curator client": func(*rapid.T) {
			if l := m.drawNode(leasesBelow); l.owner == nil {
				m.deleteByOther(leasesBelow, l)
			}
		},
		"another client deletes a node": func(t *rapid.T) {
			below := rapid.IntRange(queueBelow, leasesBelow).Draw(t, "below")
			if n := m.drawNode(below); n.owner != nil || below == leasesBelow {
				m.deleteByOther(below, n)
			}
		},
		"drain": func(*rapid.T) { m.drain() },
		"":      func(*rapid.T) { m.check() },
	}
}

// check checks that the semaphore has the permits that are held.
func (m *semaphoreModel) check() {
	held := 0
	for _, l := range m.nodes[leasesBelow] {
		if l.granted {
			held++
		}
	}
	if held > m.permits {
		m.t.Fatalf("%d of %d permits are held: %s", held, m.permits, m)
	}
}

// finish has all owners release. All requests must end, and nothing may be left.
func (m *semaphoreModel) finish() {
	for range 1000 {
		m.drain()
		open := 0
		for _, p := range m.processes {
			open += len(p.open)
			for _, id := range p.open.In("held") {
				m.release(p, id)
			}
		}
		m.nodes[leasesBelow] = slices.DeleteFunc(m.nodes[leasesBelow], func(n *semaphoreNode) bool { return n.owner == nil && n.granted })
		m.decide()
		if open+len(m.nodes[queueBelow])+len(m.nodes[leasesBelow]) == 0 {
			break
		}
	}
	if len(m.nodes[queueBelow])+len(m.nodes[leasesBelow]) > 0 {
		m.t.Fatalf("nodes are left: %s", m)
	}
	for _, p := range m.processes {
		if s := p.state; !s.Idle() || s.asked.First() != nil || s.next.First() != nil || len(p.open)+s.below.Len()+len(s.owners)+s.used+s.tries+s.missing != 0 {
			m.t.Fatalf("process %d: %v is open; the semaphore has %+v", p.n, p.open, s)
		}
	}
}

func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		machinetest.Repeat(t, m.actions())
		m.finish()
	})
}

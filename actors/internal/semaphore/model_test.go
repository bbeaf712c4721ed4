package semaphore

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// semaphoreModel is a semaphore whose request queue and leases are plain lists, and the processes
// whose States use it, beside clients of Curator. The lists change at once. What they report to a
// State is delayed, but keeps its order.
type semaphoreModel struct {
	t         *rapid.T
	permits   int
	processes []*semaphoreProcess
	nodes     [2][]*semaphoreNode // of the request queue and of the leases
	ids       requests.ID         // the last one
	czxid     int64
}

// semaphoreNode is a node in the request queue or among the leases.
type semaphoreNode struct {
	owner     *semaphoreProcess // nil: a client of Curator
	id        requests.ID
	granted   bool
	czxid     int64
	try       bool
	multiLock bool
}

// semaphoreProcess is a State, its requests, and what has not been delivered to it.
type semaphoreProcess struct {
	n       int
	state   *State
	open    machinetest.Open
	permits map[requests.ID]int
	told    [2][]requests.Effect // by the request queue and by the leases
	turns   []requests.ID        // requests of multi-locks that have passed the request queue
}

func newModel(t *rapid.T) *semaphoreModel {
	m := &semaphoreModel{t: t, permits: rapid.IntRange(1, 4).Draw(t, "permits")}
	for n := range rapid.IntRange(1, 3).Draw(t, "processes") {
		m.processes = append(m.processes, &semaphoreProcess{n: n, state: New(m.permits, true), open: machinetest.Open{}, permits: map[requests.ID]int{}})
	}
	return m
}

// takeEffects returns the effects of a State since the last call.
func takeEffects(s *State) []requests.Effect {
	invariants.Check(s)
	return slices.Clone(s.Effects())
}

// tell has the owner of a node in a list told of it.
func (n *semaphoreNode) tell(below int, told requests.Effect) {
	told.ID = n.id
	n.owner.told[below] = append(n.owner.told[below], told)
}

// perform performs the effects of a State.
func (m *semaphoreModel) perform(p *semaphoreProcess) {
	var leases []requests.Effect
	for _, f := range takeEffects(p.state) {
		switch f.Kind {
		case requests.Acquire:
			if f.Below == leasesBelow && !m.inTurn(p) && len(p.told[queueBelow]) == 0 { // a loss may not be delivered
				m.t.Fatalf("process %d acquires lease %d before its turn in the request queue: %s", p.n, f.ID, m)
			}
			m.add(p, int(f.Below), f.ID, f.Request.Try)
		case requests.NoteNode:
			leases = append(leases, f)
		case requests.ReportTurn:
			p.turns = append(p.turns, f.ID)
		case requests.Cancel, requests.Release:
			m.end(p, f)
		case requests.Grant, requests.Refuse, requests.Lose, requests.ConfirmRelease:
			if err := p.open.Answer(f.Kind, f.ID); err != nil {
				m.t.Fatalf("process %d: %v", p.n, err)
			}
			if f.Kind == requests.Grant {
				m.checkGrant(p, f.ID, leases)
				leases = nil
			}
		}
	}
	m.decide()
}

func (m *semaphoreModel) add(p *semaphoreProcess, below int, id requests.ID, try bool) {
	if slices.ContainsFunc(m.nodes[below], func(n *semaphoreNode) bool { return n.owner == p && uint32(n.id) == uint32(id) }) {
		m.t.Fatalf("process %d: request %x has the place of another one: %s", p.n, id, m)
	}
	m.czxid++
	m.nodes[below] = append(m.nodes[below], &semaphoreNode{owner: p, id: id, try: try, multiLock: p.state.below.At(id).Atomic, czxid: m.czxid})
}

// end takes a node away that is withdrawn or released, or that is lost already.
func (m *semaphoreModel) end(p *semaphoreProcess, f requests.Effect) {
	i := slices.IndexFunc(m.nodes[f.Below], func(n *semaphoreNode) bool { return n.owner == p && n.id == f.ID })
	told := requests.Effect{Kind: requests.Refuse, ID: f.ID, Reason: requests.NotHeld}
	switch release := f.Kind == requests.Release; {
	case i < 0 && !release:
		return
	case release && i >= 0:
		told.Kind, told.Reason = requests.ConfirmRelease, 0
	}
	if i >= 0 {
		m.nodes[f.Below] = slices.Delete(m.nodes[f.Below], i, i+1)
	}
	p.told[f.Below] = append(p.told[f.Below], told)
}

// checkGrant checks the leases by which a request holds.
func (m *semaphoreModel) checkGrant(p *semaphoreProcess, id requests.ID, leases []requests.Effect) {
	if len(leases) != p.permits[id] {
		m.t.Fatalf("process %d: request %d for %d permits has %d leases", p.n, id, p.permits[id], len(leases))
	}
	for _, l := range leases {
		if l.Token.Czxid == 0 || l.Token != machinetest.TokenAt(l.Token.Czxid, 0) {
			m.t.Fatalf("process %d: request %d is granted %v", p.n, id, leases)
		}
	}
}

// inTurn reports whether a request of the process has passed the request queue.
func (m *semaphoreModel) inTurn(p *semaphoreProcess) bool {
	return slices.ContainsFunc(m.nodes[queueBelow], func(n *semaphoreNode) bool { return n.owner == p && n.granted })
}

// decide grants each node that may hold, and refuses the tries that would have to wait.
func (m *semaphoreModel) decide() {
	m.decideQueue()
	m.decideLeases()
}

func (m *semaphoreModel) decideQueue() {
	for i, n := range m.nodes[queueBelow] {
		switch passes := n.owner == m.nodes[queueBelow][0].owner && (n.owner != nil || i == 0); {
		case !passes && n.try && n.owner != nil:
			m.nodes[queueBelow] = slices.Delete(m.nodes[queueBelow], i, i+1)
			n.tell(queueBelow, requests.Effect{Kind: requests.Refuse, Reason: requests.NotAcquired})
			m.decideQueue()
			return
		case !passes:
			return
		case n.granted:
		case n.owner == nil:
			m.czxid++
			n.granted = true
			m.nodes[leasesBelow] = append(m.nodes[leasesBelow], &semaphoreNode{id: n.id, czxid: m.czxid})
		default:
			n.granted = true
			n.tell(queueBelow, requests.Effect{Kind: requests.Grant})
		}
	}
}

func (m *semaphoreModel) decideLeases() {
	for i, l := range m.nodes[leasesBelow] {
		switch {
		case l.granted:
		case l.owner == nil && len(m.nodes[leasesBelow]) <= m.permits: // Curator counts all leases
			l.granted = true
			m.nodes[queueBelow] = slices.DeleteFunc(m.nodes[queueBelow], func(n *semaphoreNode) bool { return n.owner == nil && n.id == l.id })
			m.decide()
			return
		case l.owner == nil:
		case i < m.permits:
			l.granted = true
			l.tell(leasesBelow, requests.Effect{Kind: requests.Grant, Token: machinetest.TokenAt(l.czxid, 0)})
		case l.try:
			m.nodes[leasesBelow] = slices.Delete(m.nodes[leasesBelow], i, i+1)
			l.tell(leasesBelow, requests.Effect{Kind: requests.Refuse, Reason: requests.NotAcquired})
			m.decide()
			return
		}
	}
}

// deleteByOther has another client delete a node in a list. The lock below then reports a granted
// node as lost, refuses one of a multi-lock, and replaces any other one at the end of the list.
func (m *semaphoreModel) deleteByOther(below int, n *semaphoreNode) {
	m.nodes[below] = slices.DeleteFunc(m.nodes[below], func(other *semaphoreNode) bool { return other == n })
	switch {
	case n.owner == nil:
		m.nodes[queueBelow] = slices.DeleteFunc(m.nodes[queueBelow], func(other *semaphoreNode) bool { return other.owner == nil && other.id == n.id })
	case n.granted:
		n.tell(below, requests.Effect{Kind: requests.Lose, Reason: requests.NodeDeleted})
	case n.multiLock:
		n.tell(below, requests.Effect{Kind: requests.Refuse, Reason: requests.NodeDeleted})
	default:
		m.add(n.owner, below, n.id, n.try)
	}
	m.decide()
}

func (m *semaphoreModel) String() string {
	return fmt.Sprint("request queue:", m.nodes[queueBelow], " leases:", m.nodes[leasesBelow])
}

func (n *semaphoreNode) String() string {
	if n.owner == nil {
		return fmt.Sprintf("Curator's (%d, granted %t)", n.id, n.granted)
	}
	return fmt.Sprintf("process %d's (%d, granted %t)", n.owner.n, n.id, n.granted)
}

// deliver delivers the next of what the request queue or the leases tell. It reports whether there
// was something.
func (m *semaphoreModel) deliver(p *semaphoreProcess, below int) bool {
	if len(p.told[below]) == 0 {
		return false
	}
	told := p.told[below][0]
	p.told[below] = p.told[below][1:]
	p.state.Answered(told)
	m.perform(p)
	return true
}

// proceed calls Proceed for the first request of a multi-lock that has passed the request queue. It
// reports whether there was one.
func (m *semaphoreModel) proceed(p *semaphoreProcess) bool {
	if len(p.turns) == 0 {
		return false
	}
	id := p.turns[0]
	p.turns = p.turns[1:]
	p.state.Proceed(id)
	m.perform(p)
	return true
}

// drain delivers all calls, and checks then that the semaphore has too few permits for the first in
// the request queue.
func (m *semaphoreModel) drain() {
	for busy := true; busy; {
		busy = false
		for _, p := range m.processes {
			for m.deliver(p, queueBelow) || m.deliver(p, leasesBelow) {
				busy = true
			}
			busy = m.proceed(p) || busy
		}
	}
	if len(m.nodes[queueBelow]) == 0 {
		return
	}
	held := 0
	for _, l := range m.nodes[leasesBelow] {
		held++
		for _, p := range m.processes {
			if q := p.state.below.At(l.id); l.owner == p && q != nil && q.leases.Stage() < requests.Held {
				held--
			}
		}
		if l.owner == nil && !l.granted {
			held--
		}
	}
	wanted := 1
	if p := m.nodes[queueBelow][0].owner; p != nil && p.state.asked.First() != nil {
		wanted = p.state.asked.First().Permits
	}
	if held+wanted <= m.permits {
		m.t.Fatalf("%d permits are held, and the first request, for %d, waits: %s", held, wanted, m)
	}
}

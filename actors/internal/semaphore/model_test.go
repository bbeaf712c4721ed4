package semaphore

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// semaphoreModel is a semaphore whose request queue and leases are plain lists, and the processes
// whose States use it, beside clients of Curator. The lists change at once. What they report to a
// State is delayed, but keeps its order.
type semaphoreModel struct {
	t            *rapid.T
	permits      int
	processes    []*semaphoreProcess
	requestQueue []*semaphoreNode
	leases       []*semaphoreNode
	ids          requests.ID // the last one
	czxid        int64
}

// semaphoreNode is a node in the request queue or among the leases.
type semaphoreNode struct {
	owner     *semaphoreProcess // nil: a client of Curator
	serial    uint64
	granted   bool
	ignored   bool // its process ignores Granted: it was of a session that is lost since
	czxid     int64
	try       bool
	multiLock bool
}

// semaphoreProcess is a State, its requests, and what has not been delivered to it.
type semaphoreProcess struct {
	n          int
	state      *State
	open       machinetest.Open
	permits    map[requests.ID]int
	fromQueue  []func()      // calls of the State by the request queue
	fromLeases []func()      // calls of the State by the leases
	turns      []requests.ID // requests of multi-locks that have passed the request queue
}

func newModel(t *rapid.T) *semaphoreModel {
	m := &semaphoreModel{t: t, permits: rapid.IntRange(1, 4).Draw(t, "permits")}
	for n := range rapid.IntRange(1, 3).Draw(t, "processes") {
		m.processes = append(m.processes, &semaphoreProcess{n: n, state: New(&recorder{}, m.permits, true), open: machinetest.Open{}, permits: map[requests.ID]int{}})
	}
	return m
}

// perform performs the effects of a State.
func (m *semaphoreModel) perform(p *semaphoreProcess) {
	for _, f := range takeEffects(p.state) {
		switch f.Kind {
		case "EnterRequestQueue":
			m.requestQueue = append(m.requestQueue, &semaphoreNode{owner: p, serial: f.Serial, try: f.Try, multiLock: p.state.below[f.Serial].MultiLock})
		case "ReportTurn":
			p.turns = append(p.turns, f.ID)
		case "AcquireLease":
			if !m.inTurn(p) && len(p.fromQueue) == 0 { // a loss may not be delivered
				m.t.Fatalf("process %d acquires lease %d before its turn in the request queue: %s", p.n, f.Serial, m)
			}
			m.czxid++
			m.leases = append(m.leases, &semaphoreNode{owner: p, serial: f.Serial, try: f.Try, multiLock: p.state.requests[f.ID].MultiLock, czxid: m.czxid})
		case "LeaveRequestQueue":
			m.requestQueue = p.without(m.requestQueue, f.Serial)
		case "WithdrawLease":
			m.leases = p.without(m.leases, f.Serial)
		case "ReleaseLease":
			was := len(m.leases)
			m.leases = p.without(m.leases, f.Serial)
			if len(m.leases) < was {
				p.fromLeases = append(p.fromLeases, func() { p.state.Released(f.Serial) })
			} else {
				p.fromLeases = append(p.fromLeases, func() { p.state.Refused(f.Serial, requests.NotHeld) })
			}
		case "Grant", "Refuse", "Lose", "ConfirmRelease":
			if err := p.open.Answer(f, f.ID); err != nil {
				m.t.Fatalf("process %d: %v", p.n, err)
			}
			if f.Kind == "Grant" {
				m.checkGrant(p, f.ID, f.Leases.([]Lease))
			}
		}
	}
	m.decide()
}

// checkGrant checks the leases by which a request holds.
func (m *semaphoreModel) checkGrant(p *semaphoreProcess, id requests.ID, leases []Lease) {
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
	return slices.ContainsFunc(m.requestQueue, func(n *semaphoreNode) bool { return n.owner == p && n.granted })
}

// without returns a list without a node of the process.
func (p *semaphoreProcess) without(list []*semaphoreNode, serial uint64) []*semaphoreNode {
	return slices.DeleteFunc(list, func(n *semaphoreNode) bool { return n.owner == p && n.serial == serial })
}

// decide grants each node that may hold, and refuses the tries that would have to wait.
func (m *semaphoreModel) decide() {
	m.decideQueue()
	m.decideLeases()
}

func (m *semaphoreModel) decideQueue() {
	for i, n := range m.requestQueue {
		switch passes := n.owner == m.requestQueue[0].owner && (n.owner != nil || i == 0); {
		case !passes && n.try && n.owner != nil:
			m.requestQueue = slices.Delete(m.requestQueue, i, i+1)
			n.owner.fromQueue = append(n.owner.fromQueue, func() { n.owner.state.Refused(n.serial, requests.NotAcquired) })
			m.decideQueue()
			return
		case !passes:
			return
		case n.granted:
		case n.owner == nil:
			m.czxid++
			n.granted = true
			m.leases = append(m.leases, &semaphoreNode{serial: n.serial, czxid: m.czxid})
		default:
			n.granted = true
			n.owner.fromQueue = append(n.owner.fromQueue, func() {
				if !n.ignored {
					n.owner.state.Granted(Lease{Serial: n.serial})
				}
			})
		}
	}
}

func (m *semaphoreModel) decideLeases() {
	for i, l := range m.leases {
		switch {
		case l.granted:
		case l.owner == nil && len(m.leases) <= m.permits: // Curator counts all leases
			l.granted = true
			m.requestQueue = slices.DeleteFunc(m.requestQueue, func(n *semaphoreNode) bool { return n.owner == nil && n.serial == l.serial })
			m.decide()
			return
		case l.owner == nil:
		case i < m.permits:
			l.granted = true
			l.owner.fromLeases = append(l.owner.fromLeases, func() {
				if !l.ignored {
					l.owner.state.Granted(Lease{Serial: l.serial, Token: machinetest.TokenAt(l.czxid, 0)})
				}
			})
		case l.try:
			m.leases = slices.Delete(m.leases, i, i+1)
			l.owner.fromLeases = append(l.owner.fromLeases, func() { l.owner.state.Refused(l.serial, requests.NotAcquired) })
			m.decide()
			return
		}
	}
}

// deleteByOther has another client delete a node in a list. The lock below then reports a granted
// node as lost, refuses one of a multi-lock, and replaces any other one at the end of the list.
func (m *semaphoreModel) deleteByOther(list []*semaphoreNode, n *semaphoreNode) []*semaphoreNode {
	inQueue := slices.Contains(m.requestQueue, n)
	list = slices.DeleteFunc(list, func(other *semaphoreNode) bool { return other == n })
	p := n.owner
	switch {
	case p == nil:
		m.requestQueue = slices.DeleteFunc(m.requestQueue, func(other *semaphoreNode) bool { return other.owner == nil && other.serial == n.serial })
	case n.granted && inQueue:
		p.fromQueue = append(p.fromQueue, func() { p.state.Lost(n.serial, requests.NodeDeleted) })
	case n.granted:
		p.fromLeases = append(p.fromLeases, func() { p.state.Lost(n.serial, requests.NodeDeleted) })
	case n.multiLock && inQueue:
		p.fromQueue = append(p.fromQueue, func() { p.state.Refused(n.serial, requests.NodeDeleted) })
	case n.multiLock:
		p.fromLeases = append(p.fromLeases, func() { p.state.Refused(n.serial, requests.NodeDeleted) })
	default:
		m.czxid++
		list = append(list, &semaphoreNode{owner: p, serial: n.serial, try: n.try, czxid: m.czxid})
	}
	return list
}

func (m *semaphoreModel) String() string {
	return fmt.Sprint("request queue:", m.requestQueue, " leases:", m.leases)
}

func (n *semaphoreNode) String() string {
	if n.owner == nil {
		return fmt.Sprintf("Curator's (%d, granted %t)", n.serial, n.granted)
	}
	return fmt.Sprintf("process %d's (%d, granted %t)", n.owner.n, n.serial, n.granted)
}

// deliver makes the next call of those from one list. It reports whether there was one.
func (m *semaphoreModel) deliver(p *semaphoreProcess, from *[]func()) bool {
	if len(*from) == 0 {
		return false
	}
	call := (*from)[0]
	*from = (*from)[1:]
	call()
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
			for m.deliver(p, &p.fromQueue) || m.deliver(p, &p.fromLeases) {
				busy = true
			}
			busy = m.proceed(p) || busy
		}
	}
	if len(m.requestQueue) == 0 {
		return
	}
	held := 0
	for _, l := range m.leases {
		held++
		for _, p := range m.processes {
			if l.owner == p && p.state.below[l.serial] != nil && p.state.below[l.serial].leases.Stage() < requests.Held {
				held--
			}
		}
		if l.owner == nil && !l.granted {
			held--
		}
	}
	wanted := 1
	if p := m.requestQueue[0].owner; p != nil && p.state.asked.First() != nil {
		wanted = p.state.asked.First().Permits
	}
	if held+wanted <= m.permits {
		m.t.Fatalf("%d permits are held, and the first request, for %d, waits: %s", held, wanted, m)
	}
}

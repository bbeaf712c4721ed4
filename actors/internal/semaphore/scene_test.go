package semaphore

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// semaphoreWorld is a semaphore whose two directories are plain lists, with the States of some processes and
// clients of Curator (rivals) around them. Lists change at once; what they report to a State is
// delayed, but keeps its order.
type semaphoreWorld struct {
	t         *rapid.T
	permits   int
	processes []*semaphoreProcess
	queue     []*queuedNode
	leases    []*queuedNode
	ids       requests.ID
	czxid     int64
}

// queuedNode is a request of a process, or of a Curator client.
type queuedNode struct {
	owner     *semaphoreProcess // nil: a rival
	serial    uint64
	granted   bool
	czxid     int64
	try       bool
	multiLock bool
}

// semaphoreProcess is a State and what is on its way to it.
type semaphoreProcess struct {
	n          int
	state      *State
	fromQueue  []func() // from the request queue
	fromLeases []func() // from the leases
	open       map[requests.ID]string
	permits    map[requests.ID]int
	grants     map[requests.ID][]Lease
	turns      []requests.ID // requests of multi-locks that have passed the request queue
}

func newWorld(t *rapid.T) *semaphoreWorld {
	s := &semaphoreWorld{t: t, permits: rapid.IntRange(1, 4).Draw(t, "permits")}
	for n := range rapid.IntRange(1, 3).Draw(t, "processes") {
		s.processes = append(s.processes, &semaphoreProcess{n: n, state: New(&recorder{}, s.permits, true), open: map[requests.ID]string{}, permits: map[requests.ID]int{}, grants: map[requests.ID][]Lease{}})
	}
	return s
}

// perform performs the effects of a State.
func (s *semaphoreWorld) perform(m *semaphoreProcess) {
	for _, o := range effectsSince(m.state) {
		switch o.kind {
		case "EnterRequestQueue":
			s.queue = append(s.queue, &queuedNode{owner: m, serial: o.serial, try: o.try, multiLock: m.state.below[o.serial].MultiLock})
		case "ReportTurn":
			m.turns = append(m.turns, o.id)
		case "AcquireLease":
			if s.inTurn(m) == nil && len(m.fromQueue) == 0 { // a loss may be on its way
				s.t.Fatalf("process %d asks for lease %d before its turn in the request queue: %s", m.n, o.serial, s)
			}
			s.czxid++
			s.leases = append(s.leases, &queuedNode{owner: m, serial: o.serial, try: o.try, multiLock: m.state.requests[o.id].MultiLock, czxid: s.czxid})
		case "LeaveRequestQueue":
			s.queue = m.without(s.queue, o.serial)
		case "WithdrawLease":
			s.leases = m.without(s.leases, o.serial)
		case "ReleaseLease":
			was := len(s.leases)
			s.leases = m.without(s.leases, o.serial)
			if len(s.leases) < was {
				m.fromLeases = append(m.fromLeases, func() { m.state.Released(o.serial) })
			} else {
				m.fromLeases = append(m.fromLeases, func() { m.state.Refused(o.serial, requests.NotHeld) })
			}
		case "Grant":
			s.granted(m, o)
		case "Refuse", "ConfirmRelease":
			if m.open[o.id] == "" {
				s.t.Fatalf("process %d: request %d is answered again by %s", m.n, o.id, o.kind)
			}
			delete(m.open, o.id)
		case "Lose":
			if m.open[o.id] != "held" {
				s.t.Fatalf("process %d: request %d is lost but was %q", m.n, o.id, m.open[o.id])
			}
			delete(m.open, o.id)
		}
	}
	s.decide()
}

func (s *semaphoreWorld) granted(m *semaphoreProcess, o effect) {
	if m.open[o.id] != "waiting" || len(o.leases) != m.permits[o.id] {
		s.t.Fatalf("process %d: request %d for %d permits was %q and got %d", m.n, o.id, m.permits[o.id], m.open[o.id], len(o.leases))
	}
	for _, l := range o.leases {
		if l.Czxid == 0 || l.Generation != machinetest.GenerationAt(l.Czxid) {
			s.t.Fatalf("process %d: request %d was granted %v", m.n, o.id, o.leases)
		}
	}
	m.open[o.id], m.grants[o.id] = "held", o.leases
}

// inTurn returns a node of the process to which the request queue was granted.
func (s *semaphoreWorld) inTurn(m *semaphoreProcess) *queuedNode {
	for _, g := range s.queue {
		if g.owner == m && g.granted {
			return g
		}
	}
	return nil
}

func (m *semaphoreProcess) without(list []*queuedNode, serial uint64) []*queuedNode {
	return slices.DeleteFunc(list, func(x *queuedNode) bool { return x.owner == m && x.serial == serial })
}

// decide grants what the rules allow.
func (s *semaphoreWorld) decide() {
	s.decideQueue()
	s.decideLeases()
}

func (s *semaphoreWorld) decideQueue() {
	for i, g := range s.queue {
		switch mine := g.owner == s.queue[0].owner && (g.owner != nil || i == 0); {
		case !mine && g.try && g.owner != nil:
			s.queue = slices.Delete(s.queue, i, i+1)
			g.owner.fromQueue = append(g.owner.fromQueue, func() { g.owner.state.Refused(g.serial, requests.NotAcquired) })
			s.decideQueue()
			return
		case !mine:
			return
		case g.granted:
		case g.owner == nil:
			s.czxid++
			g.granted = true
			s.leases = append(s.leases, &queuedNode{serial: g.serial, czxid: s.czxid})
		default:
			g.granted = true
			g.owner.fromQueue = append(g.owner.fromQueue, func() { g.owner.state.Granted(Lease{Serial: g.serial}) })
		}
	}
}

func (s *semaphoreWorld) decideLeases() {
	for i, l := range s.leases {
		switch {
		case l.granted:
		case l.owner == nil && len(s.leases) <= s.permits: // as Curator has it
			l.granted = true
			s.queue = slices.DeleteFunc(s.queue, func(g *queuedNode) bool { return g.owner == nil && g.serial == l.serial })
			s.decide()
			return
		case l.owner == nil:
		case i < s.permits:
			l.granted = true
			l.owner.fromLeases = append(l.owner.fromLeases, func() {
				l.owner.state.Granted(Lease{Serial: l.serial, Generation: machinetest.GenerationAt(l.czxid), Czxid: l.czxid})
			})
		case l.try:
			s.leases = slices.Delete(s.leases, i, i+1)
			l.owner.fromLeases = append(l.owner.fromLeases, func() { l.owner.state.Refused(l.serial, requests.NotAcquired) })
			s.decide()
			return
		}
	}
}

// vanish deletes a node. A holder loses it, a waiting request gets another node at the end of the
// queue, and one of a multi-lock is refused.
func (s *semaphoreWorld) vanish(list []*queuedNode, x *queuedNode) []*queuedNode {
	inQueue := slices.Contains(s.queue, x)
	list = slices.DeleteFunc(list, func(y *queuedNode) bool { return y == x })
	m := x.owner
	switch {
	case m == nil:
		s.queue = slices.DeleteFunc(s.queue, func(g *queuedNode) bool { return g.owner == nil && g.serial == x.serial })
	case x.granted && inQueue:
		m.fromQueue = append(m.fromQueue, func() { m.state.Lost(x.serial, requests.NodeDeleted) })
	case x.granted:
		m.fromLeases = append(m.fromLeases, func() { m.state.Lost(x.serial, requests.NodeDeleted) })
	case x.multiLock && inQueue:
		m.fromQueue = append(m.fromQueue, func() { m.state.Refused(x.serial, requests.NodeDeleted) })
	case x.multiLock:
		m.fromLeases = append(m.fromLeases, func() { m.state.Refused(x.serial, requests.NodeDeleted) })
	default:
		s.czxid++
		list = append(list, &queuedNode{owner: m, serial: x.serial, try: x.try, czxid: s.czxid})
	}
	return list
}

func (s *semaphoreWorld) String() string {
	text := "queue:"
	for _, g := range s.queue {
		text += g.String()
	}
	text += " leases:"
	for _, l := range s.leases {
		text += l.String()
	}
	return text
}

func (x *queuedNode) String() string {
	if x.owner == nil {
		return fmt.Sprintf(" rival(%d,%v)", x.serial, x.granted)
	}
	return fmt.Sprintf(" %d(%d,%v)", x.owner.n, x.serial, x.granted)
}

// hear delivers the next message of one list.
func (s *semaphoreWorld) hear(m *semaphoreProcess, from *[]func()) bool {
	if len(*from) == 0 {
		return false
	}
	say := (*from)[0]
	*from = (*from)[1:]
	say()
	s.perform(m)
	return true
}

// proceed has the first request of a multi-lock that has passed the request queue proceed.
func (s *semaphoreWorld) proceed(m *semaphoreProcess) bool {
	if len(m.turns) == 0 {
		return false
	}
	id := m.turns[0]
	m.turns = m.turns[1:]
	m.state.Proceed(id)
	s.perform(m)
	return true
}

func (s *semaphoreWorld) drain() {
	for busy := true; busy; {
		busy = false
		for _, m := range s.processes {
			for s.hear(m, &m.fromQueue) || s.hear(m, &m.fromLeases) {
				busy = true
			}
			busy = s.proceed(m) || busy
		}
	}
	if len(s.queue) == 0 {
		return
	}
	held := 0
	for _, l := range s.leases {
		held++
		for _, m := range s.processes {
			if l.owner == m && m.state.below[l.serial] != nil && m.state.below[l.serial].leases.Stage() < requests.Held {
				held--
			}
		}
		if l.owner == nil && !l.granted {
			held--
		}
	}
	need := 1
	if m := s.queue[0].owner; m != nil && len(m.state.asked) > 0 {
		need = m.state.asked[0].Permits
	}
	if held+need <= s.permits {
		s.t.Fatalf("%d permits are held, and the next, for %d, sleeps: %s", held, need, s)
	}
}

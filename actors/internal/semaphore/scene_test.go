package semaphore

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// A scene is a semaphore whose two directories are plain lists, with the Pools of some
// processes and clients of Curator around them. Lists change at once; what they have
// to say to a Pool takes its time, but keeps its order.
type scene struct {
	t       *rapid.T
	permits int
	procs   []*member
	gate    []*spot
	leases  []*spot
	ids     requests.ID
	czxid   int64
}

// spot is a node: a member's request, or a Curator client.
type spot struct {
	owner   *member // nil: a rival
	serial  uint64
	granted bool
	czxid   int64
	try     bool
	joint   bool
}

// member is a process: its Pool, and what is on its way to it.
type member struct {
	n       int
	pool    *State
	fromA   []func() // from the gate
	fromB   []func() // from the leases
	open    map[requests.ID]string
	permits map[requests.ID]int
	grants  map[requests.ID][]Lease
	passed  []requests.ID // joint requests that are past the gate and may proceed
}

func newScene(t *rapid.T) *scene {
	s := &scene{t: t, permits: rapid.IntRange(1, 4).Draw(t, "permits")}
	for n := range rapid.IntRange(1, 3).Draw(t, "processes") {
		s.procs = append(s.procs, &member{n: n, pool: New(s.permits, true), open: map[requests.ID]string{}, permits: map[requests.ID]int{}, grants: map[requests.ID][]Lease{}})
	}
	return s
}

// perform does what the Pool orders.
func (s *scene) perform(m *member) {
	for _, o := range slices.Clone(m.pool.Effects()) {
		switch o.Kind {
		case EnterRequestQueue:
			s.gate = append(s.gate, &spot{owner: m, serial: o.Serial, try: o.Try, joint: m.pool.queued[o.Serial].MultiLock})
		case ReportTurn:
			m.passed = append(m.passed, o.ID)
		case AcquireLease:
			if s.holdsGate(m) == nil && len(m.fromA) == 0 { // a loss may be on its way
				s.t.Fatalf("process %d asks for lease %d outside of the gate: %s", m.n, o.Serial, s)
			}
			s.czxid++
			s.leases = append(s.leases, &spot{owner: m, serial: o.Serial, try: o.Try, joint: m.pool.requests[o.ID].MultiLock, czxid: s.czxid})
		case LeaveRequestQueue:
			s.gate = m.without(s.gate, o.Serial)
		case WithdrawLease:
			s.leases = m.without(s.leases, o.Serial)
		case ReleaseLease:
			was := len(s.leases)
			s.leases = m.without(s.leases, o.Serial)
			if len(s.leases) < was {
				m.fromB = append(m.fromB, func() { m.pool.Released(o.Serial) })
			} else {
				m.fromB = append(m.fromB, func() { m.pool.Refused(o.Serial, requests.NotHeld) })
			}
		case Grant:
			s.granted(m, o)
		case Refuse, ConfirmRelease:
			if m.open[o.ID] == "" {
				s.t.Fatalf("process %d: request %d is answered again by %d", m.n, o.ID, o.Kind)
			}
			delete(m.open, o.ID)
		case Lose:
			if m.open[o.ID] != "held" {
				s.t.Fatalf("process %d: request %d is lost but was %q", m.n, o.ID, m.open[o.ID])
			}
			delete(m.open, o.ID)
		}
	}
	s.decide()
}

func (s *scene) granted(m *member, o Effect) {
	if m.open[o.ID] != "waiting" || len(o.Leases) != m.permits[o.ID] {
		s.t.Fatalf("process %d: request %d for %d permits was %q and got %d", m.n, o.ID, m.permits[o.ID], m.open[o.ID], len(o.Leases))
	}
	for _, l := range o.Leases {
		if l.Czxid == 0 || l.Generation != machinetest.GenerationAt(l.Czxid) {
			s.t.Fatalf("process %d: request %d was granted %v", m.n, o.ID, o.Leases)
		}
	}
	m.open[o.ID], m.grants[o.ID] = "held", o.Leases
}

// holdsGate is a spot of the member to which the gate was granted.
func (s *scene) holdsGate(m *member) *spot {
	for _, g := range s.gate {
		if g.owner == m && g.granted {
			return g
		}
	}
	return nil
}

func (m *member) without(list []*spot, serial uint64) []*spot {
	return slices.DeleteFunc(list, func(x *spot) bool { return x.owner == m && x.serial == serial })
}

// decide grants what the rules give.
func (s *scene) decide() {
	s.decideGate()
	s.decideLeases()
}

func (s *scene) decideGate() {
	for i, g := range s.gate {
		switch mine := g.owner == s.gate[0].owner && (g.owner != nil || i == 0); {
		case !mine && g.try && g.owner != nil:
			s.gate = slices.Delete(s.gate, i, i+1)
			g.owner.fromA = append(g.owner.fromA, func() { g.owner.pool.Refused(g.serial, requests.NotAcquired) })
			s.decideGate()
			return
		case !mine:
			return
		case g.granted:
		case g.owner == nil:
			s.czxid++
			g.granted = true
			s.leases = append(s.leases, &spot{serial: g.serial, czxid: s.czxid})
		default:
			g.granted = true
			g.owner.fromA = append(g.owner.fromA, func() { g.owner.pool.Granted(Lease{Serial: g.serial}) })
		}
	}
}

func (s *scene) decideLeases() {
	for i, l := range s.leases {
		switch {
		case l.granted:
		case l.owner == nil && len(s.leases) <= s.permits: // as Curator has it
			l.granted = true
			s.gate = slices.DeleteFunc(s.gate, func(g *spot) bool { return g.owner == nil && g.serial == l.serial })
			s.decide()
			return
		case l.owner == nil:
		case i < s.permits:
			l.granted = true
			l.owner.fromB = append(l.owner.fromB, func() {
				l.owner.pool.Granted(Lease{Serial: l.serial, Generation: machinetest.GenerationAt(l.czxid), Czxid: l.czxid})
			})
		case l.try:
			s.leases = slices.Delete(s.leases, i, i+1)
			l.owner.fromB = append(l.owner.fromB, func() { l.owner.pool.Refused(l.serial, requests.NotAcquired) })
			s.decide()
			return
		}
	}
}

// vanish deletes a node. A holder loses it, a request that waits gets another at the end of
// the queue, and a joint one is refused.
func (s *scene) vanish(list []*spot, x *spot) []*spot {
	atGate := slices.Contains(s.gate, x)
	list = slices.DeleteFunc(list, func(y *spot) bool { return y == x })
	m := x.owner
	switch {
	case m == nil:
		s.gate = slices.DeleteFunc(s.gate, func(g *spot) bool { return g.owner == nil && g.serial == x.serial })
	case x.granted && atGate:
		m.fromA = append(m.fromA, func() { m.pool.Lost(x.serial, requests.NodeDeleted) })
	case x.granted:
		m.fromB = append(m.fromB, func() { m.pool.Lost(x.serial, requests.NodeDeleted) })
	case x.joint && atGate:
		m.fromA = append(m.fromA, func() { m.pool.Refused(x.serial, requests.NodeDeleted) })
	case x.joint:
		m.fromB = append(m.fromB, func() { m.pool.Refused(x.serial, requests.NodeDeleted) })
	default:
		s.czxid++
		list = append(list, &spot{owner: m, serial: x.serial, try: x.try, czxid: s.czxid})
	}
	return list
}

func (s *scene) String() string {
	text := "gate:"
	for _, g := range s.gate {
		text += g.String()
	}
	text += " leases:"
	for _, l := range s.leases {
		text += l.String()
	}
	return text
}

func (x *spot) String() string {
	if x.owner == nil {
		return fmt.Sprintf(" rival(%d,%v)", x.serial, x.granted)
	}
	return fmt.Sprintf(" %d(%d,%v)", x.owner.n, x.serial, x.granted)
}

// hear delivers the next message of one list.
func (s *scene) hear(m *member, from *[]func()) bool {
	if len(*from) == 0 {
		return false
	}
	say := (*from)[0]
	*from = (*from)[1:]
	say()
	s.perform(m)
	return true
}

// proceed has the first request that may proceed do so.
func (s *scene) proceed(m *member) bool {
	if len(m.passed) == 0 {
		return false
	}
	id := m.passed[0]
	m.passed = m.passed[1:]
	m.pool.Proceed(id)
	s.perform(m)
	return true
}

func (s *scene) drain() {
	for busy := true; busy; {
		busy = false
		for _, m := range s.procs {
			for s.hear(m, &m.fromA) || s.hear(m, &m.fromB) {
				busy = true
			}
			busy = s.proceed(m) || busy
		}
	}
	if len(s.gate) == 0 {
		return
	}
	held := 0
	for _, l := range s.leases {
		held++
		for _, m := range s.procs {
			if l.owner == m && m.pool.leases[l.serial] != nil && !m.pool.leases[l.serial].held {
				held--
			}
		}
		if l.owner == nil && !l.granted {
			held--
		}
	}
	need := 1
	if m := s.gate[0].owner; m != nil && len(m.pool.asked) > 0 {
		need = m.pool.asked[0].Permits
	}
	if held+need <= s.permits {
		s.t.Fatalf("%d permits are held, and the next, for %d, sleeps: %s", held, need, s)
	}
}

package semaphore

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

func (s *semaphoreWorld) pick(m *semaphoreProcess, state string) requests.ID {
	var ids []requests.ID
	for _, id := range slices.Sorted(maps.Keys(m.open)) {
		if m.open[id] == state {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		s.t.Skip("no such request")
	}
	return rapid.SampledFrom(ids).Draw(s.t, "request")
}

func (s *semaphoreWorld) release(m *semaphoreProcess, id requests.ID) {
	m.open[id] = "released"
	m.state.Release(id)
	s.perform(m)
}

func (s *semaphoreWorld) actions() map[string]func(*rapid.T) {
	proc := func(t *rapid.T) *semaphoreProcess {
		return s.processes[rapid.IntRange(0, len(s.processes)-1).Draw(t, "process")]
	}
	spotOf := func(t *rapid.T, list []*queuedNode) *queuedNode {
		if len(list) == 0 {
			t.Skip("no node")
		}
		return list[rapid.IntRange(0, len(list)-1).Draw(t, "node")]
	}
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			m := proc(t)
			s.ids++
			multiLock := rapid.IntRange(0, 2).Draw(t, "multi-lock") == 0
			m.open[s.ids], m.permits[s.ids] = "waiting", 1
			if !multiLock {
				m.permits[s.ids] = rapid.IntRange(1, s.permits).Draw(t, "permits")
			}
			m.state.Acquire(requests.Incoming{ID: s.ids, MultiLock: multiLock, Permits: m.permits[s.ids], Try: rapid.IntRange(0, 4).Draw(t, "try") == 0})
			s.perform(m)
		},
		"cancel": func(t *rapid.T) {
			m := proc(t)
			m.state.Cancel(s.pick(m, rapid.SampledFrom([]string{"waiting", "held"}).Draw(t, "state")), requests.Cancelled)
			s.perform(m)
		},
		"release": func(t *rapid.T) {
			m := proc(t)
			s.release(m, s.pick(m, "held"))
		},
		"proceed":                func(t *rapid.T) { s.proceed(proc(t)) },
		"the request queue says": func(t *rapid.T) { m := proc(t); s.hear(m, &m.fromQueue) },
		"leases say":             func(t *rapid.T) { m := proc(t); s.hear(m, &m.fromLeases) },
		"rival comes": func(*rapid.T) {
			s.ids++
			s.queue = append(s.queue, &queuedNode{serial: uint64(s.ids)})
			s.decide()
		},
		"rival goes": func(t *rapid.T) {
			if l := spotOf(t, s.leases); l.owner == nil {
				s.leases = s.vanish(s.leases, l)
				s.decide()
			}
		},
		"another client deletes": func(t *rapid.T) {
			if g := spotOf(t, s.queue); rapid.Bool().Draw(t, "the request queue's") && g.owner != nil {
				s.queue = s.vanish(s.queue, g)
			} else if len(s.leases) > 0 {
				s.leases = s.vanish(s.leases, spotOf(t, s.leases))
			}
			s.decide()
		},
		"drain": func(*rapid.T) { s.drain() },
		"":      func(*rapid.T) { s.check() },
	}
}

// check counts the held permits: grants of which all nodes exist.
func (s *semaphoreWorld) check() {
	held := 0
	for _, l := range s.leases {
		if l.granted {
			held++
		}
	}
	if held > s.permits {
		s.t.Fatalf("%d of %d permits are held: %s", held, s.permits, s)
	}
}

// finish has all owners leave: all requests end, and nothing remains.
func (s *semaphoreWorld) finish() {
	for range 1000 {
		s.drain()
		open := 0
		for _, m := range s.processes {
			for _, id := range slices.Sorted(maps.Keys(m.open)) {
				open++
				if m.open[id] == "held" {
					s.release(m, id)
				}
			}
		}
		rivals := func(x *queuedNode) bool { return x.owner == nil && x.granted }
		s.leases = slices.DeleteFunc(s.leases, rivals)
		s.decide()
		if open+len(s.queue)+len(s.leases) == 0 {
			break
		}
	}
	if len(s.queue)+len(s.leases) > 0 {
		s.t.Fatalf("nodes are left: %s", s)
	}
	for _, m := range s.processes {
		if p := m.state; !p.Idle() || len(m.open)+len(p.below)+len(p.asked)+len(p.next)+len(p.owners)+p.used+p.tries+p.missing != 0 {
			s.t.Fatalf("process %d: %v is open; the semaphore has %+v", m.n, m.open, p)
		}
	}
}

func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newWorld(t)
		machinetest.Repeat(t, s.actions())
		s.finish()
	})
}

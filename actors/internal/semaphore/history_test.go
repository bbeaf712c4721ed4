package semaphore

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

func (s *scene) pick(m *member, state string) requests.ID {
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

func (s *scene) release(m *member, id requests.ID) {
	m.open[id] = "released"
	m.pool.Release(id)
	s.perform(m)
}

func (s *scene) actions() map[string]func(*rapid.T) {
	proc := func(t *rapid.T) *member { return s.procs[rapid.IntRange(0, len(s.procs)-1).Draw(t, "process")] }
	spotOf := func(t *rapid.T, list []*spot) *spot {
		if len(list) == 0 {
			t.Skip("no node")
		}
		return list[rapid.IntRange(0, len(list)-1).Draw(t, "node")]
	}
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			m := proc(t)
			s.ids++
			joint := rapid.IntRange(0, 2).Draw(t, "joint") == 0
			m.open[s.ids], m.permits[s.ids] = "waiting", 1
			if !joint {
				m.permits[s.ids] = rapid.IntRange(1, s.permits).Draw(t, "permits")
			}
			m.pool.Acquire(Acquire{ID: s.ids, MultiLock: joint, Permits: m.permits[s.ids], Try: rapid.IntRange(0, 4).Draw(t, "try") == 0})
			s.perform(m)
		},
		"cancel": func(t *rapid.T) {
			m := proc(t)
			m.pool.Cancel(s.pick(m, rapid.SampledFrom([]string{"waiting", "held"}).Draw(t, "state")), requests.Cancelled)
			s.perform(m)
		},
		"release": func(t *rapid.T) {
			m := proc(t)
			s.release(m, s.pick(m, "held"))
		},
		"proceed":       func(t *rapid.T) { s.proceed(proc(t)) },
		"the gate says": func(t *rapid.T) { m := proc(t); s.hear(m, &m.fromA) },
		"leases say":    func(t *rapid.T) { m := proc(t); s.hear(m, &m.fromB) },
		"rival comes": func(*rapid.T) {
			s.ids++
			s.gate = append(s.gate, &spot{serial: uint64(s.ids)})
			s.decide()
		},
		"rival goes": func(t *rapid.T) {
			if l := spotOf(t, s.leases); l.owner == nil {
				s.leases = s.vanish(s.leases, l)
				s.decide()
			}
		},
		"somebody deletes": func(t *rapid.T) {
			if g := spotOf(t, s.gate); rapid.Bool().Draw(t, "the gate's") && g.owner != nil {
				s.gate = s.vanish(s.gate, g)
			} else if len(s.leases) > 0 {
				s.leases = s.vanish(s.leases, spotOf(t, s.leases))
			}
			s.decide()
		},
		"drain": func(*rapid.T) { s.drain() },
		"":      func(*rapid.T) { s.check() },
	}
}

// check counts who holds: a grant of which all nodes are there.
func (s *scene) check() {
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

// finish lets everybody leave: all requests end, and nothing remains.
func (s *scene) finish() {
	for range 1000 {
		s.drain()
		open := 0
		for _, m := range s.procs {
			for _, id := range slices.Sorted(maps.Keys(m.open)) {
				open++
				if m.open[id] == "held" {
					s.release(m, id)
				}
			}
		}
		rivals := func(x *spot) bool { return x.owner == nil && x.granted }
		s.leases = slices.DeleteFunc(s.leases, rivals)
		s.decide()
		if open+len(s.gate)+len(s.leases) == 0 {
			break
		}
	}
	if len(s.gate)+len(s.leases) > 0 {
		s.t.Fatalf("nodes are left: %s", s)
	}
	for _, m := range s.procs {
		if p := m.pool; !p.Idle() || len(m.open)+len(p.queued)+len(p.leases)+len(p.asked)+len(p.next)+len(p.owners)+p.used+p.tries+p.missing != 0 {
			s.t.Fatalf("process %d: %v is open; the pool has %+v", m.n, m.open, p)
		}
	}
}

func TestHistoriesOfAPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		machinetest.Repeat(t, s.actions())
		s.finish()
	})
}

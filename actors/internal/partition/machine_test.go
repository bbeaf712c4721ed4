package partition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fakeGroup has the machines of a group, with the queue of each partition's lock.
type fakeGroup struct {
	t        *rapid.T
	n        int
	machines map[uint64]*Machine
	queues   [][]uint64 // by partition: contenders, the first one holds
	granted  []uint64   // by partition: who was told that it holds
	runs     []uint64   // by partition: whose function runs
	ended    map[uint64][]bool
	number   int64
	records  map[uint64]MemberRecord
	left     map[uint64]bool
	pending  []departure
}

// departure is a campaign that is withdrawn or released, which the lock has yet to confirm.
type departure struct {
	id uint64
	p  int
}

func (w *fakeGroup) perform(id uint64, actions []Action) {
	for _, e := range actions {
		p := e.Partition
		switch e.Kind {
		case Campaign:
			if slices.Contains(w.queues[p], id) {
				w.t.Fatalf("two campaigns of %d for partition %d", id, p)
			}
			w.queues[p] = append(w.queues[p], id)
		case Withdraw, Release:
			if w.runs[p] == id {
				w.t.Fatalf("partition %d is released before the function of %d has returned", p, id)
			}
			w.pending = append(w.pending, departure{id, p})
		case Start:
			if w.runs[p] != 0 {
				w.t.Fatalf("%d starts in partition %d while %d runs", id, p, w.runs[p])
			}
			w.runs[p], w.ended[id][p] = id, false
		case End:
			w.ended[id][p] = true
		case Pause:
			w.perform(id, w.machines[id].Retry(p))
		case Left:
			w.left[id] = true
		}
	}
	if err := w.machines[id].Check(); err != nil {
		w.t.Fatal(err)
	}
}

// step confirms a departure, grants, and returns what it may; it reports whether there was anything.
func (w *fakeGroup) step() (any bool) {
	if len(w.pending) > 0 {
		d := w.pending[0]
		w.pending, any = w.pending[1:], true
		w.queues[d.p] = slices.DeleteFunc(w.queues[d.p], func(o uint64) bool { return o == d.id })
		if w.granted[d.p] == d.id {
			w.granted[d.p] = 0
		}
		w.perform(d.id, w.machines[d.id].Released(d.p))
	}
	for p := range w.n {
		if q := w.queues[p]; len(q) > 0 && w.granted[p] == 0 {
			w.granted[p], any = q[0], true
			w.perform(q[0], w.machines[q[0]].Granted(p))
		}
		if id := w.runs[p]; id != 0 && w.ended[id][p] {
			w.runs[p], any = 0, true
			w.perform(id, w.machines[id].Returned(p, true))
		}
	}
	return any
}

func (w *fakeGroup) publish() {
	var all []MemberRecord
	for id, m := range w.machines {
		if w.left[id] {
			continue
		}
		known, is := w.records[id]
		// A member that waits publishes that again and again.
		if !is || m.HasChanged() || m.Leaving() != known.Leaving || slices.ContainsFunc(known.Waits, func(b byte) bool { return b != 0 }) {
			leads, waits := m.Publication()
			w.number++
			w.records[id] = MemberRecord{id, Record{Partitions: w.n, Leads: leads, Waits: waits, Leaving: m.Leaving()}, w.number}
		}
		all = append(all, w.records[id])
	}
	v, err := NewView("/group", all, w.n)
	if err != nil {
		w.t.Fatal(err)
	}
	for id, m := range w.machines {
		if !w.left[id] && rapid.IntRange(0, 3).Draw(w.t, "sees") > 0 {
			w.perform(id, m.Changed(v))
		}
	}
}

// In random histories of members that come, leave, and see the state late, no function starts beside
// another one, and in the end the best member leads each partition.
func TestMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "partitions")
		w := &fakeGroup{t: t, n: n, machines: map[uint64]*Machine{}, queues: make([][]uint64, n), granted: make([]uint64, n), runs: make([]uint64, n),
			ended: map[uint64][]bool{}, left: map[uint64]bool{}, records: map[uint64]MemberRecord{}}
		next := uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				next++
				w.machines[next], w.ended[next] = NewMachine(next, n), make([]bool, n)
			case 1:
				if id := uint64(rapid.IntRange(1, int(next)+1).Draw(t, "leaver")); w.machines[id] != nil {
					w.perform(id, w.machines[id].Leave())
				}
			case 2, 3:
				w.publish()
			default:
				w.step()
			}
		}
		for range 200 {
			w.publish()
			for w.step() {
			}
		}
		for p, id := range w.runs {
			if id == 0 {
				for other := range w.machines {
					if !w.left[other] {
						t.Fatalf("nobody leads partition %d", p)
					}
				}
			} else if m := w.machines[id]; m.places[p].Best != m.self {
				t.Fatalf("partition %d is not led by its best member", p)
			}
		}
	})
}

// What a member publishes changes also where it does nothing: when it becomes the best member for a
// partition that it waits for, and when it loses one.
func TestChangesWithoutActions(t *testing.T) {
	const n = 8
	view := func(members ...MemberRecord) *View {
		for i := range members {
			members[i].Record = Record{Partitions: n, Leads: NewBits(n), Waits: NewBits(n)}
		}
		v, err := NewView("/group", members, n)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	m := NewMachine(1, n)
	m.Changed(view(MemberRecord{ID: 1}, MemberRecord{ID: 2}))
	_, before := m.Publication()
	if m.HasChanged() {
		t.Error("the publication has changed since it was asked for")
	}
	if actions := m.Changed(view(MemberRecord{ID: 1})); len(actions) > 0 {
		t.Errorf("a member that waits for all partitions does %v", actions)
	}
	if !m.HasChanged() {
		t.Error("the member waits for more partitions, and does not publish that")
	}
	if _, waits := m.Publication(); slices.Equal(before, waits) {
		t.Errorf("the member waits for %v before and behind", waits)
	}
	m.Granted(0)
	m.Publication()
	m.Lost(0)
	if leads, _ := m.Publication(); leads.Has(0) {
		t.Error("the member leads a partition that it has lost")
	}
	m.Granted(1)
	m.Publication()
	if m.Lost(1); !m.HasChanged() {
		t.Error("the member has lost a partition, and does not publish that")
	}
}

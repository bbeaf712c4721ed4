package lockqueue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
)

// Semaphores and local queues over real States.

func newSemaphoreStack(t *rapid.T) *stack {
	permits := rapid.IntRange(1, 4).Draw(t, "permits")
	s := newStack(t, queue.RequestQueue(), queue.Leases(permits))
	s.permits, s.atRest, s.hear = permits, s.semaphoresAtRest, s.semaphoreHears
	for _, f := range s.fronts {
		f.semaphore = semaphore.New(semaphoreActor{s, f}, permits, true)
	}
	s.acquire = func(t *rapid.T, f *front) {
		d := s.request(f, ownerRequest{
			Owner:   rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "owner"),
			Permits: rapid.IntRange(1, permits).Draw(t, "permits"),
			Try:     rapid.IntRange(0, 4).Draw(t, "try") == 0,
		})
		f.semaphore.Acquire(requests.Incoming{ID: d.ID, Owner: d.Owner, Permits: d.Permits, Try: d.Try})
		invariants.Check(f.semaphore)
	}
	s.cancel = func(f *front, id requests.ID) {
		f.semaphore.Cancel(id, requests.Cancelled)
		invariants.Check(f.semaphore)
	}
	s.release = func(f *front, id requests.ID) {
		f.semaphore.Release(id)
		invariants.Check(f.semaphore)
	}
	s.end = func(f *front) {
		if p := f.semaphore; !p.Idle() || p.Check() != nil {
			t.Fatalf("process %d: the semaphore has %+v: %s", f.n, p, s)
		}
	}
	return s
}

// semaphoreActor performs what the semaphore of a front asks for. It notes which requests ask for leases.
type semaphoreActor struct {
	s *stack
	f *front
}

func (a semaphoreActor) EnterRequestQueue(serial uint64, r requests.Incoming) {
	requestQueue := a.f.layers[0]
	requestQueue.send(func() { requestQueue.ask(serial, Acquire{Kind: queue.ProcessExclusive, Try: r.Try}) })
}

func (a semaphoreActor) LeaveRequestQueue(serial uint64) {
	requestQueue := a.f.layers[0]
	requestQueue.send(func() { requestQueue.cancel(serial) })
}

func (a semaphoreActor) AcquireLeases(r requests.Incoming, serials []uint64) {
	a.f.asking = append(a.f.asking, r.ID)
	leases, serials := a.f.layers[1], slices.Clone(serials)
	for _, serial := range serials {
		a.f.leases[serial] = r.ID
	}
	leases.send(func() {
		for _, serial := range serials {
			leases.ask(serial, Acquire{Try: r.Try})
		}
	})
}

func (a semaphoreActor) WithdrawLease(serial uint64) {
	a.asksNoMore(a.f.leases[serial])
	leases := a.f.layers[1]
	leases.send(func() { leases.cancel(serial) })
}

func (a semaphoreActor) ReleaseLease(serial uint64) {
	leases := a.f.layers[1]
	leases.send(func() { leases.release(serial) })
}

func (a semaphoreActor) asksNoMore(id requests.ID) {
	a.f.asking = slices.DeleteFunc(a.f.asking, func(other requests.ID) bool { return other == id })
}

func (a semaphoreActor) ReportTurn(requests.ID) {}

func (a semaphoreActor) GrantLeases(id requests.ID, leases []semaphore.Lease) {
	a.asksNoMore(id)
	a.s.semaphoreGrants(a.f, id, leases)
}

func (a semaphoreActor) RefuseRequest(id requests.ID, why requests.Reason) {
	a.asksNoMore(id)
	a.s.answered(a.f, Refuse, id, why)
}

func (a semaphoreActor) Lose(id requests.ID, why requests.Reason) {
	a.asksNoMore(id)
	a.s.answered(a.f, Lose, id, why)
}

func (a semaphoreActor) ConfirmRelease(id requests.ID, _ int) {
	a.s.answered(a.f, ConfirmRelease, id, 0)
}

func (a semaphoreActor) RequestRevoke(requests.ID) {}

func (a semaphoreActor) NotifyContended(requests.ID) {}

func (s *stack) semaphoreHears(f *front, _ *layer, m message) {
	switch m.Kind {
	case Grant:
		f.semaphore.Granted(semaphore.Lease{Serial: m.serial, Node: m.Node, Generation: m.Generation, Czxid: m.Czxid, Step: m.Step})
	case Refuse:
		f.semaphore.Refused(m.serial, m.Reason)
	case Lose:
		f.semaphore.Lost(m.serial, m.Reason)
	case ConfirmRelease:
		f.semaphore.Released(m.serial)
	}
	invariants.Check(f.semaphore)
}

// semaphoreGrants checks a grant: its permits exist, and its token is greater than those of all
// former grants beside which it could not be held.
func (s *stack) semaphoreGrants(f *front, id requests.ID, granted []semaphore.Lease) {
	d, leases := f.open[id], f.layers[1]
	if d == nil || d.state != "waiting" || len(granted) != d.Permits {
		s.t.Fatalf("process %d: request %d is granted %v and was %+v: %s", f.n, id, granted, d, s)
	}
	for _, l := range granted {
		x := leases.by[l.Serial]
		if x == nil || x.node == "" || x.node != l.Node || l.Generation != machinetest.GenerationAt(l.Czxid) {
			s.t.Fatalf("process %d: request %d is granted %+v, its lease is %+v: %s", f.n, id, l, x, s)
		}
		d.nodes = append(d.nodes, x)
		if t := [2]int64{l.Czxid, int64(l.Step)}; slices.Compare(t[:], d.token[:]) > 0 {
			d.token = t
		}
	}
	d.state = "held"
	if s.meddling || !s.exist(f, d) {
		return // its loss is on its way
	}
	held := d.Permits
	s.live(d, func(other *ownerRequest) { held += other.Permits })
	if held > s.permits {
		s.t.Fatalf("process %d: request %d is granted, and %d of %d permits are held: %s", f.n, id, held, s.permits, s)
	}
	for permits, token := range s.tokens {
		if permits+d.Permits > s.permits && slices.Compare(d.token[:], token[:]) <= 0 {
			s.t.Fatalf("process %d: request %d has token %v after %v: %s", f.n, id, d.token, token, s)
		}
	}
	s.record(d.Permits, d.token)
}

func (s *stack) record(class int, token [2]int64) {
	if t := s.tokens[class]; slices.Compare(token[:], t[:]) > 0 {
		s.tokens[class] = token
	}
}

// semaphoresAtRest checks that the first request in the request queue lacks permits.
func (s *stack) semaphoresAtRest() {
	i := slices.IndexFunc(s.worlds[0].sorted(), func(n *worldNode) bool { return !n.plain })
	if i < 0 {
		return
	}
	first := s.worlds[0].sorted()[i]
	if first.proc == nil || first.epoch != first.proc.epoch {
		return
	}
	f := s.fronts[first.proc.n]
	if len(f.asking) == 0 {
		s.t.Fatalf("process %d is first in the request queue and asks for no lease: %s", first.proc.n, s)
	}
	taken := 0
	for _, n := range s.worlds[1].nodes {
		if n.proc == nil || n.epoch != n.proc.epoch {
			taken++
		}
	}
	s.live(nil, func(d *ownerRequest) { taken += d.Permits })
	if taken+f.open[f.asking[0]].Permits <= s.permits {
		s.t.Fatalf("%d permits are taken, and a request for %d sleeps: %s", taken, f.open[f.asking[0]].Permits, s)
	}
}

func newLocalQueueStack(t *rapid.T, rule queue.Rule) *stack {
	s := newStack(t, rule)
	s.atRest, s.hear = s.localQueuesAtRest, s.localQueueHears
	grants := uint32(rapid.IntRange(1, 3).Draw(t, "grants"))
	for _, f := range s.fronts {
		f.localQueue = localqueue.New(&f.localActor, rule, grants)
	}
	s.cancel = func(f *front, id requests.ID) {
		s.stepLocalQueue(f, func(l *localqueue.Queue) { l.Cancel(id, requests.Cancelled) })
	}
	s.release = func(f *front, id requests.ID) { s.stepLocalQueue(f, func(l *localqueue.Queue) { l.Release(id) }) }
	s.acquire = func(t *rapid.T, f *front) {
		d := s.request(f, ownerRequest{
			Owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
			Kind:  queue.Kind(rapid.IntRange(0, len(rule.Markers)-1).Draw(t, "kind")),
			Try:   rapid.IntRange(0, 4).Draw(t, "try") == 0,
		})
		s.stepLocalQueue(f, func(l *localqueue.Queue) {
			l.Acquire(requests.Incoming{ID: d.ID, Owner: d.Owner, Kind: d.Kind, Try: d.Try})
		})
	}
	s.end = func(f *front) {
		if l := f.localQueue; !l.Idle() || l.Check() != nil {
			t.Fatalf("process %d: the local queue has %+v: %s", f.n, l, s)
		}
	}
	return s
}

func (s *stack) stepLocalQueue(f *front, event func(*localqueue.Queue)) {
	l, owner := f.layers[0], ""
	if l.w.rule.Downgrades() {
		owner = "the local queue"
	}
	event(f.localQueue)
	invariants.Check(f.localQueue)
	for _, o := range f.localActor.Take() {
		switch o.Kind {
		case "AcquireNode":
			if len(f.localQueue.NodeHolds()) == 1 {
				f.first = o.Serial
			}
			l.send(func() { l.ask(o.Serial, Acquire{Owner: owner, Kind: o.NodeKind, Try: o.Try, NotifyContended: true}) })
		case "ReleaseNode":
			l.send(func() { l.cancel(o.Serial) })
		case "StartIdleTimer":
			f.timing = true
		case "Grant":
			s.localQueueGrants(f, o)
		default:
			s.answered(f, o, o.ID, o.Reason)
		}
	}
}

func (s *stack) localQueueHears(f *front, _ *layer, m message) {
	switch m.Kind {
	case Grant:
		s.stepLocalQueue(f, func(l *localqueue.Queue) { l.NodeGranted(m.serial, m.Generation, m.Czxid, m.Step) })
	case Refuse:
		s.stepLocalQueue(f, func(l *localqueue.Queue) { l.NodeRefused(m.serial, m.Reason) })
	case Lose:
		s.stepLocalQueue(f, func(l *localqueue.Queue) { l.NodeLost(m.serial, m.Reason) })
	case NotifyContended:
		s.stepLocalQueue(f, func(l *localqueue.Queue) { l.NodeContended(m.serial) })
	}
}

// localQueueGrants checks a grant: no other blocks it, and its token is greater than those of all
// former grants that would have, except for its own owner's.
func (s *stack) localQueueGrants(f *front, e machinetest.LocalEffect) {
	d, x := f.open[e.ID], f.layers[0].by[e.Serial]
	if d == nil || d.state != "waiting" || x == nil || x.node == "" || e.Generation != machinetest.GenerationAt(e.Czxid) {
		s.t.Fatalf("process %d: %+v, was %+v, holds for owners %+v: %s", f.n, e, d, x, s)
	}
	d.state, d.nodes, d.token = "held", []*nodeRequest{x}, [2]int64{e.Czxid, int64(e.Step)}
	if s.meddling || !s.exist(f, d) {
		return // its loss is on its way
	}
	rule, mine := s.worlds[0].rule, false
	if d.Owner != "" { // a re-entry has the token that its owner has, or had until lately
		who := fmt.Sprint(f.n, d.Owner)
		mine = s.owners[d.token] == who
		s.owners[d.token] = who
	}
	s.live(d, func(o *ownerRequest) {
		if rule.BlockedBy[d.Kind].Has(o.Kind) && (d.Owner == "" || o.Owner != d.Owner || f.open[o.ID] != o) {
			s.t.Fatalf("process %d: request %d is granted beside %+v: %s", f.n, e.ID, *o, s)
		}
	})
	for kind, token := range s.tokens {
		if c := slices.Compare(d.token[:], token[:]); !mine && rule.BlockedBy[d.Kind].Has(queue.Kind(kind)) && c <= 0 {
			s.t.Fatalf("process %d: request %d has token %v after %v: %s", f.n, e.ID, d.token, token, s)
		}
	}
	s.record(int(d.Kind), d.token)
}

// localQueuesAtRest checks that a request holds if others wait and all nodes are of local queues.
func (s *stack) localQueuesAtRest() {
	for _, n := range s.worlds[0].nodes {
		if !n.plain && (n.proc == nil || n.epoch != n.proc.epoch) {
			return
		}
	}
	waiting, held := 0, 0
	for _, f := range s.fronts {
		for _, d := range f.open {
			switch d.state {
			case "waiting":
				waiting++
			case "held":
				held++
			}
		}
	}
	if waiting > 0 && held == 0 {
		s.t.Fatalf("%d requests wait, and none holds: %s", waiting, s)
	}
}

func testStack(t *testing.T, make func(*rapid.T) *stack) {
	for _, name := range []string{"undisturbed", "nodes deleted by others"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := make(t)
				s.meddling = name != "undisturbed"
				for _, w := range s.worlds {
					w.meddling = s.meddling
				}
				actions := s.actions()
				actions["lingered"] = func(t *rapid.T) {
					f := rapid.SampledFrom(s.fronts).Draw(t, "process")
					if !f.timing {
						t.Skip("no timer")
					}
					f.timing = false
					s.stepLocalQueue(f, (*localqueue.Queue).IdleTimedOut)
				}
				actions["overdue"] = func(t *rapid.T) {
					f := rapid.SampledFrom(s.fronts).Draw(t, "process")
					if f.localQueue == nil || len(f.localQueue.NodeHolds()) == 0 {
						t.Skip("no node hold")
					}
					s.stepLocalQueue(f, func(l *localqueue.Queue) { l.TimeBudgetUsed(f.first) })
				}
				s.run(actions)
				s.finish()
			})
		})
	}
}

func TestHistoriesOfSemaphoresOverLocks(t *testing.T) { testStack(t, newSemaphoreStack) }

func TestHistoriesOfLocalQueuesOverAMutex(t *testing.T) {
	testStack(t, func(t *rapid.T) *stack { return newLocalQueueStack(t, queue.Mutex()) })
}

func TestHistoriesOfLocalQueuesOverAReadWriteLock(t *testing.T) {
	testStack(t, func(t *rapid.T) *stack { return newLocalQueueStack(t, queue.ReadWrite()) })
}

package lockqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
)

func TestHistoriesOfSemaphoresOverLocks(t *testing.T) { testStack(t, newSemaphoreStack) }

func newSemaphoreStack(t *rapid.T) *stack {
	permits := rapid.IntRange(1, 4).Draw(t, "permits")
	s := newStack(t, queue.RequestQueue(), queue.Leases(permits))
	s.permits, s.checkWaiting, s.handle = permits, s.checkSemaphores, s.handleInSemaphore
	for _, u := range s.machines {
		u.semaphore = semaphore.New(semaphoreActor{s, u}, permits, true)
	}
	s.acquire = func(t *rapid.T, u *upperMachine) {
		r := s.addRequest(u, requests.Incoming{
			Owner:   rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "owner"),
			Permits: rapid.IntRange(1, permits).Draw(t, "permits"),
			Try:     rapid.IntRange(0, 4).Draw(t, "try") == 0,
		})
		u.semaphore.Acquire(r)
		invariants.Check(u.semaphore)
	}
	s.cancel = func(u *upperMachine, id requests.ID) {
		u.semaphore.Cancel(id, requests.Cancelled)
		invariants.Check(u.semaphore)
	}
	s.release = func(u *upperMachine, id requests.ID) {
		u.semaphore.Release(id)
		invariants.Check(u.semaphore)
	}
	s.checkEmpty = func(u *upperMachine) {
		if p := u.semaphore; !p.Idle() || p.Check() != nil {
			t.Fatalf("process %d: the semaphore has %+v: %s", u.n, p, s)
		}
	}
	return s
}

// semaphoreActor performs the effects of a semaphore. It notes which requests acquire leases.
type semaphoreActor struct {
	s *stack
	u *upperMachine
}

func (a semaphoreActor) EnterRequestQueue(serial uint64, r requests.Incoming) {
	requestQueue := a.u.states[0]
	requestQueue.send(func() {
		requestQueue.acquire(serial, Acquire{Incoming: requests.Incoming{Kind: queue.ProcessExclusive, Try: r.Try}})
	})
}

func (a semaphoreActor) LeaveRequestQueue(serial uint64) {
	requestQueue := a.u.states[0]
	requestQueue.send(func() { requestQueue.cancel(serial) })
}

func (a semaphoreActor) AcquireLeases(r requests.Incoming, serials []uint64) {
	a.u.acquiring = append(a.u.acquiring, r.ID)
	leases, serials := a.u.states[1], slices.Clone(serials)
	for _, serial := range serials {
		a.u.leases[serial] = r.ID
	}
	leases.send(func() {
		for _, serial := range serials {
			leases.acquire(serial, Acquire{Incoming: requests.Incoming{Try: r.Try}})
		}
	})
}

func (a semaphoreActor) WithdrawLease(serial uint64) {
	a.endAcquiring(a.u.leases[serial])
	leases := a.u.states[1]
	leases.send(func() { leases.cancel(serial) })
}

func (a semaphoreActor) ReleaseLease(serial uint64) {
	leases := a.u.states[1]
	leases.send(func() { leases.release(serial) })
}

func (a semaphoreActor) endAcquiring(id requests.ID) {
	a.u.acquiring = slices.DeleteFunc(a.u.acquiring, func(other requests.ID) bool { return other == id })
}

func (a semaphoreActor) ReportTurn(requests.ID) {}

func (a semaphoreActor) GrantLeases(id requests.ID, leases []semaphore.Lease) {
	a.endAcquiring(id)
	a.s.checkSemaphoreGrant(a.u, id, leases)
}

func (a semaphoreActor) RefuseRequest(id requests.ID, why requests.Reason) {
	a.endAcquiring(id)
	a.s.onAnswer(a.u, Refuse, id, why)
}

func (a semaphoreActor) Lose(id requests.ID, why requests.Reason) {
	a.endAcquiring(id)
	a.s.onAnswer(a.u, Lose, id, why)
}

func (a semaphoreActor) ConfirmRelease(id requests.ID, _ int) {
	a.s.onAnswer(a.u, ConfirmRelease, id, 0)
}

func (a semaphoreActor) RequestRevoke(requests.ID) {}

func (a semaphoreActor) NotifyContended(requests.ID) {}

func (s *stack) handleInSemaphore(u *upperMachine, e message) {
	switch e.Kind {
	case Grant:
		u.semaphore.Granted(semaphore.Lease{Serial: e.serial, Node: e.Node, Token: e.Token})
	case Refuse:
		u.semaphore.Refused(e.serial, e.Reason)
	case Lose:
		u.semaphore.Lost(e.serial, e.Reason)
	case ConfirmRelease:
		u.semaphore.Released(e.serial)
	}
	invariants.Check(u.semaphore)
}

// checkSemaphoreGrant checks a grant: its leases exist, and its token is greater than that of each
// earlier grant beside which the semaphore has too few permits.
func (s *stack) checkSemaphoreGrant(u *upperMachine, id requests.ID, granted []semaphore.Lease) {
	r, leases := u.open[id], u.states[1]
	if r == nil || r.state != "waiting" || len(granted) != r.Permits {
		s.t.Fatalf("process %d: request %d is granted %v and was %+v: %s", u.n, id, granted, r, s)
	}
	for _, l := range granted {
		lease := leases.bySerial[l.Serial]
		if lease == nil || lease.node == "" || lease.node != l.Node || l.Token != machinetest.TokenAt(l.Token.Czxid, l.Token.Step) {
			s.t.Fatalf("process %d: request %d is granted %+v, its lease is %+v: %s", u.n, id, l, lease, s)
		}
		r.nodes = append(r.nodes, lease)
		if l.Token.Compare(r.token) > 0 {
			r.token = l.Token
		}
	}
	r.state = "held"
	if s.othersDelete || !s.nodesExist(u, r) {
		return // its loss is on its way
	}
	held := r.Permits
	s.eachHeld(r, func(other *ownerRequest) { held += other.Permits })
	if held > s.permits {
		s.t.Fatalf("process %d: request %d is granted, and %d of %d permits are held: %s", u.n, id, held, s.permits, s)
	}
	for permits, token := range s.tokens {
		if permits+r.Permits > s.permits && r.token.Compare(token) <= 0 {
			s.t.Fatalf("process %d: request %d has token %v after %v: %s", u.n, id, r.token, token, s)
		}
	}
	s.recordToken(r.Permits, r.token)
}

// checkSemaphores checks that the semaphore has too few permits for the first request in the
// request queue.
func (s *stack) checkSemaphores() {
	inQueue := slices.DeleteFunc(s.locks[0].inOrder(), func(n *serverNode) bool { return n.unnumbered })
	if len(inQueue) == 0 {
		return
	}
	first := inQueue[0]
	if first.process == nil || first.epoch != first.process.epoch {
		return
	}
	u := s.machines[first.process.n]
	if len(u.acquiring) == 0 {
		s.t.Fatalf("process %d is first in the request queue and acquires no lease: %s", first.process.n, s)
	}
	taken := 0
	for _, n := range s.locks[1].nodes {
		if n.process == nil || n.epoch != n.process.epoch {
			taken++
		}
	}
	s.eachHeld(nil, func(r *ownerRequest) { taken += r.Permits })
	if wanted := u.open[u.acquiring[0]].Permits; taken+wanted <= s.permits {
		s.t.Fatalf("%d permits are taken, and a request for %d waits: %s", taken, wanted, s)
	}
}

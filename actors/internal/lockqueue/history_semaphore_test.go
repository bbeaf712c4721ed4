package lockqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
)

func TestHistoriesOfSemaphoresOverLocks(t *testing.T) { testStack(t, newSemaphoreStacks) }

func newSemaphoreStacks(t *rapid.T) *stacks {
	permits := rapid.IntRange(1, 4).Draw(t, "permits")
	s := newStacks(t, queue.RequestQueue(), queue.Leases(permits))
	s.permits, s.checkWaiting = permits, s.checkSemaphores
	for _, u := range s.machines {
		u.stack.Machine = semaphore.New(permits, true)
		u.stack.Perform = func() { s.performSemaphore(u, u.stack.Machine.Effects()) }
	}
	s.draw = func(t *rapid.T) requests.Incoming {
		return requests.Incoming{
			Owner:   rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "owner"),
			Permits: rapid.IntRange(1, permits).Draw(t, "permits"),
			Try:     rapid.IntRange(0, 4).Draw(t, "try") == 0,
		}
	}
	return s
}

// performSemaphore notes which requests acquire leases.
func (s *stacks) performSemaphore(u *upperMachine, effects []requests.Effect) {
	endAcquiring := func(id requests.ID) {
		u.acquiring = slices.DeleteFunc(u.acquiring, func(other requests.ID) bool { return other == id })
	}
	var leases []requests.Effect
	for _, f := range effects {
		switch f.Kind {
		case requests.Acquire: // perhaps of the request queue again, behind the loss of a lease
			endAcquiring(f.By)
			if f.Below == 1 {
				u.acquiring = append(u.acquiring, f.By)
			}
			u.stack.Add(f)
		case requests.Cancel, requests.Release:
			u.stack.Add(f)
		case requests.NoteNode:
			leases = append(leases, f)
		case requests.Grant:
			endAcquiring(f.ID)
			s.checkSemaphoreGrant(u, f.ID, leases)
			leases = nil
		default:
			endAcquiring(f.ID)
			s.onAnswer(u, f)
		}
	}
}

// checkSemaphoreGrant checks a grant: its leases exist, and its token is greater than that of each
// earlier grant beside which the semaphore has too few permits.
func (s *stacks) checkSemaphoreGrant(u *upperMachine, id requests.ID, granted []requests.Effect) {
	r, leases := u.open[id], u.states[1]
	if r == nil || r.state != "waiting" || len(granted) != r.Permits {
		s.t.Fatalf("process %d: request %d is granted %v and was %+v: %s", u.n, id, granted, r, s)
	}
	for _, l := range granted {
		lease := leases.requests[l.ID]
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
func (s *stacks) checkSemaphores() {
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

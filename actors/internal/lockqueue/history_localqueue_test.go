package lockqueue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

func TestHistoriesOfLocalQueuesOverAMutex(t *testing.T) {
	testStack(t, func(t *rapid.T) *stacks { return newLocalQueueStacks(t, queue.Mutex()) })
}

func TestHistoriesOfLocalQueuesOverAReadWriteLock(t *testing.T) {
	testStack(t, func(t *rapid.T) *stacks { return newLocalQueueStacks(t, queue.ReadWrite()) })
}

func newLocalQueueStacks(t *rapid.T, rule queue.Rule) *stacks {
	s := newStacks(t, rule)
	s.checkWaiting = s.checkLocalQueues
	grants := uint32(rapid.IntRange(1, 3).Draw(t, "grants"))
	for _, u := range s.machines {
		u.localQueue = localqueue.New(rule, grants)
		u.stack.Machine = u.localQueue
		u.stack.Perform = func() { s.performLocalQueue(u, u.localQueue.Effects()) }
	}
	s.draw = func(t *rapid.T) requests.Incoming {
		return requests.Incoming{
			Owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
			Kind:  queue.Kind(rapid.IntRange(0, len(rule.Markers)-1).Draw(t, "kind")),
			Try:   rapid.IntRange(0, 4).Draw(t, "try") == 0,
		}
	}
	return s
}

func (s *stacks) performLocalQueue(u *upperMachine, effects []requests.Effect) {
	for _, f := range effects {
		switch f.Kind {
		case requests.Acquire, requests.Cancel:
			u.stack.Add(f)
		case requests.NoteNode:
			if f.First {
				u.first = f.ID
			}
		case requests.StartIdleTimer:
			u.timerRuns = true
		case requests.Grant:
			s.checkLocalQueueGrant(u, f)
		default:
			s.onAnswer(u, f)
		}
	}
}

// checkLocalQueueGrant checks a grant: no other request that holds blocks it, and its token is
// greater than that of each earlier grant that would block it, except for its own owner's.
func (s *stacks) checkLocalQueueGrant(u *upperMachine, e requests.Effect) {
	r, node := u.open[e.ID], u.states[0].requests[e.By]
	if r == nil || r.state != "waiting" || node == nil || node.node == "" || e.Token != machinetest.TokenAt(e.Token.Czxid, e.Token.Step) {
		s.t.Fatalf("process %d: %+v, was %+v, by the node %+v: %s", u.n, e, r, node, s)
	}
	r.state, r.nodes, r.token = "held", []*nodeRequest{node}, e.Token
	if s.othersDelete || !s.nodesExist(u, r) {
		return // its loss is on its way
	}
	rule, ownersToken := s.locks[0].rule, false
	if r.Owner != "" { // a re-entry has the token that its owner has, or had until lately
		owner := fmt.Sprint(u.n, r.Owner)
		ownersToken = s.owners[r.token] == owner
		s.owners[r.token] = owner
	}
	s.eachHeld(r, func(other *ownerRequest) {
		if rule.BlockedBy[r.Kind].Has(other.Kind) && (r.Owner == "" || other.Owner != r.Owner || u.open[other.ID] != other) {
			s.t.Fatalf("process %d: request %d is granted beside %+v: %s", u.n, e.ID, *other, s)
		}
	})
	for kind, token := range s.tokens {
		if !ownersToken && rule.BlockedBy[r.Kind].Has(queue.Kind(kind)) && r.token.Compare(token) <= 0 {
			s.t.Fatalf("process %d: request %d has token %v after %v: %s", u.n, e.ID, r.token, token, s)
		}
	}
	s.recordToken(int(r.Kind), r.token)
}

// checkLocalQueues checks that a request holds if others wait and all contenders are of local
// queues.
func (s *stacks) checkLocalQueues() {
	for _, n := range s.locks[0].nodes {
		if !n.unnumbered && (n.process == nil || n.epoch != n.process.epoch) {
			return
		}
	}
	waiting, held := 0, 0
	for _, u := range s.machines {
		for _, r := range u.open {
			switch r.state {
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

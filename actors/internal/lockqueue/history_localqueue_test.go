package lockqueue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

func TestHistoriesOfLocalQueuesOverAMutex(t *testing.T) {
	testStack(t, func(t *rapid.T) *stack { return newLocalQueueStack(t, queue.Mutex()) })
}

func TestHistoriesOfLocalQueuesOverAReadWriteLock(t *testing.T) {
	testStack(t, func(t *rapid.T) *stack { return newLocalQueueStack(t, queue.ReadWrite()) })
}

func newLocalQueueStack(t *rapid.T, rule queue.Rule) *stack {
	s := newStack(t, rule)
	s.checkWaiting, s.handle = s.checkLocalQueues, s.handleInLocalQueue
	grants := uint32(rapid.IntRange(1, 3).Draw(t, "grants"))
	for _, u := range s.machines {
		u.localQueue = localqueue.New(&u.recorder, rule, grants)
	}
	s.cancel = func(u *upperMachine, id requests.ID) {
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.Cancel(id, requests.Cancelled) })
	}
	s.release = func(u *upperMachine, id requests.ID) {
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.Release(id) })
	}
	s.acquire = func(t *rapid.T, u *upperMachine) {
		r := s.addRequest(u, requests.Incoming{
			Owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
			Kind:  queue.Kind(rapid.IntRange(0, len(rule.Markers)-1).Draw(t, "kind")),
			Try:   rapid.IntRange(0, 4).Draw(t, "try") == 0,
		})
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.Acquire(r) })
	}
	s.checkEmpty = func(u *upperMachine) {
		if l := u.localQueue; !l.Idle() || l.Check() != nil {
			t.Fatalf("process %d: the local queue has %+v: %s", u.n, l, s)
		}
	}
	return s
}

func (s *stack) stepLocalQueue(u *upperMachine, event func(*localqueue.Queue)) {
	l, owner := u.states[0], ""
	if l.lock.rule.Downgrades() {
		owner = "the local queue"
	}
	event(u.localQueue)
	invariants.Check(u.localQueue)
	for _, f := range u.recorder.Take() {
		switch f.Kind {
		case "AcquireNode":
			if len(u.localQueue.NodeHolds()) == 1 {
				u.first = f.Serial
			}
			l.send(func() {
				l.acquire(f.Serial, Acquire{Incoming: requests.Incoming{Owner: owner, Kind: f.NodeKind, Try: f.Try, NotifyContended: true}})
			})
		case "ReleaseNode":
			l.send(func() { l.cancel(f.Serial) })
		case "StartIdleTimer":
			u.timerRuns = true
		case "Grant":
			s.checkLocalQueueGrant(u, f)
		default:
			s.onAnswer(u, f, f.ID, f.Reason)
		}
	}
}

func (s *stack) handleInLocalQueue(u *upperMachine, e message) {
	switch e.Kind {
	case Grant:
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.NodeGranted(e.serial, e.Token) })
	case Refuse:
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.NodeRefused(e.serial, e.Reason) })
	case Lose:
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.NodeLost(e.serial, e.Reason) })
	case NotifyContended:
		s.stepLocalQueue(u, func(l *localqueue.Queue) { l.NodeContended(e.serial) })
	}
}

// checkLocalQueueGrant checks a grant: no other request that holds blocks it, and its token is
// greater than that of each earlier grant that would block it, except for its own owner's.
func (s *stack) checkLocalQueueGrant(u *upperMachine, e machinetest.Effect) {
	r, node := u.open[e.ID], u.states[0].bySerial[e.Serial]
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
func (s *stack) checkLocalQueues() {
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

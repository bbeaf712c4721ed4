package lockqueue

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
)

// stack is a machine in each process above real States: a semaphore above the States of its request
// queue and of its leases, or a local queue above the State of the lock below. A machine and its
// States are different actors: messages between them are delayed, but keep their order.
type stack struct {
	t            *rapid.T
	locks        []*model
	machines     []*upperMachine
	ids          requests.ID // the last one
	othersDelete bool

	// What differs between semaphores and local queues.
	acquire      func(*rapid.T, *upperMachine)
	cancel       func(*upperMachine, requests.ID)
	release      func(*upperMachine, requests.ID)
	handle       func(*upperMachine, message)
	checkWaiting func()              // checks that no request waits that could hold
	checkEmpty   func(*upperMachine) // checks that the machine remembers nothing

	// What the checks need.
	permits int                       // of a semaphore
	tokens  map[int]requests.Token    // the greatest by permits or kind
	owners  map[requests.Token]string // to whose request a local queue has granted a token
}

// upperMachine is the semaphore or the local queue of one process.
type upperMachine struct {
	n      int
	open   map[requests.ID]*ownerRequest
	states []*lowerState // one of each lock

	semaphore *semaphore.State
	acquiring []requests.ID          // requests that acquire leases, in order
	leases    map[uint64]requests.ID // by serial of the AcquireLease

	localQueue *localqueue.Queue
	recorder   machinetest.LocalRecorder
	timerRuns  bool   // an IdleTimedOut is to come
	first      uint64 // serial of the AcquireNode that began the node hold
}

// ownerRequest is a request of an owner. Its state is waiting, held or released.
type ownerRequest struct {
	requests.Incoming
	state string
	nodes []*nodeRequest // by which it holds
	token requests.Token
}

// testStack runs random histories of a stack without and with deletions of any nodes by other
// clients.
func testStack(t *testing.T, newStack func(*rapid.T) *stack) {
	for name, othersDelete := range map[string]bool{"undisturbed": false, "nodes deleted by others": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newStack(t)
				s.othersDelete = othersDelete
				for _, m := range s.locks {
					m.othersDelete = othersDelete
				}
				s.run()
				s.finish()
			})
		})
	}
}

func newStack(t *rapid.T, rules ...queue.Rule) *stack {
	s := &stack{t: t, tokens: map[int]requests.Token{}, owners: map[requests.Token]string{}}
	processes := rapid.IntRange(2, 3).Draw(t, "processes")
	for _, rule := range rules {
		s.locks = append(s.locks, newModel(t, rule, processes))
	}
	for n := range processes {
		u := &upperMachine{n: n, open: map[requests.ID]*ownerRequest{}, leases: map[uint64]requests.ID{}}
		for _, lock := range s.locks {
			l := &lowerState{lock: lock, process: lock.processes[n], bySerial: map[uint64]*nodeRequest{}, byID: map[requests.ID]*nodeRequest{}}
			l.process.onEffect = l.onEffect
			u.states = append(u.states, l)
		}
		s.machines = append(s.machines, u)
	}
	return s
}

// nodeExists reports whether the node by which a request was granted exists. The State must have
// reported the loss if it does not.
func (s *stack) nodeExists(l *lowerState, r *nodeRequest) bool {
	n := l.lock.nodes[r.node]
	exists := n != nil && n.process == l.process
	if !exists && !r.lost && l.process.open[r.id] == "held" && !s.othersDelete {
		s.t.Fatalf("process %d holds request %d without node %s: %s", l.process.n, r.serial, r.node, l.lock)
	}
	return exists
}

// onAnswer checks an answer of a machine to an owner other than a grant.
func (s *stack) onAnswer(u *upperMachine, kind fmt.Stringer, id requests.ID, why requests.Reason) {
	r := u.open[id]
	switch k := kind.String(); {
	case k != "Refuse" && k != "Lose" && k != "ConfirmRelease":
	case r == nil:
		s.t.Fatalf("process %d: request %d is answered again by %v: %s", u.n, id, kind, s)
	case k == "Refuse" && why == requests.NotAcquired && !r.Try:
		s.t.Fatalf("process %d: request %d is no try, and is refused as one: %s", u.n, id, s)
	case k == "ConfirmRelease" && r.state != "released", k == "Lose" && r.state != "held":
		s.t.Fatalf("process %d: request %d is %s and is answered by %v: %s", u.n, id, r.state, kind, s)
	default:
		delete(u.open, id)
	}
}

// recordToken records the token of a grant of so many permits, or of a kind.
func (s *stack) recordToken(permitsOrKind int, token requests.Token) {
	if token.Compare(s.tokens[permitsOrKind]) > 0 {
		s.tokens[permitsOrKind] = token
	}
}

// eachHeld calls f with each request but one that is granted by nodes that exist.
func (s *stack) eachHeld(but *ownerRequest, f func(*ownerRequest)) {
	for _, u := range s.machines {
		for _, r := range u.open {
			if r != but && r.state == "held" && s.nodesExist(u, r) {
				f(r)
			}
		}
	}
}

// nodesExist reports whether all nodes by which a request was granted exist.
func (s *stack) nodesExist(u *upperMachine, r *ownerRequest) bool {
	all, l := true, u.states[len(u.states)-1]
	for _, node := range r.nodes {
		all = s.nodeExists(l, node) && all
	}
	return all
}

// addRequest adds a request to those of a machine, which does not know it yet, and returns it with
// its ID.
func (s *stack) addRequest(u *upperMachine, r requests.Incoming) requests.Incoming {
	s.ids++
	r.ID = s.ids
	u.open[r.ID] = &ownerRequest{Incoming: r, state: "waiting"}
	return r
}

func (s *stack) drawMachine() *upperMachine {
	return rapid.SampledFrom(s.machines).Draw(s.t, "process")
}

func (s *stack) drawRequest(state string) (*upperMachine, *ownerRequest) {
	u := s.drawMachine()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(u.open)), func(id requests.ID) bool { return u.open[id].state != state })
	return u, u.open[machinetest.Draw(s.t, ids, "request "+state)]
}

// end releases or cancels a request, by the function given.
func (s *stack) end(u *upperMachine, r *ownerRequest, by func(*upperMachine, requests.ID)) {
	if r.state == "held" {
		r.state = "released"
	}
	by(u, r.ID)
}

// deliver delivers the next message to the State, or to the machine. It reports whether there was
// one.
func (s *stack) deliver(u *upperMachine, l *lowerState, toState bool) bool {
	switch {
	case toState && len(l.toState) > 0:
		next := l.toState[0]
		l.toState = l.toState[1:]
		next()
	case !toState && len(l.toMachine) > 0:
		next := l.toMachine[0]
		l.toMachine = l.toMachine[1:]
		s.handle(u, next)
	default:
		return false
	}
	return true
}

// drain executes and delivers all that is in flight, and checks then that no request waits that
// could hold.
func (s *stack) drain() {
	for rounds, busy := 0, true; busy; rounds++ {
		if busy = false; rounds > 1000 {
			s.t.Fatalf("the messages do not end: %s", s)
		}
		for _, m := range s.locks {
			m.drain()
		}
		for _, u := range s.machines {
			for _, l := range u.states {
				for s.deliver(u, l, true) || s.deliver(u, l, false) {
					busy = true
				}
			}
		}
	}
	if !s.othersDelete && !slices.ContainsFunc(s.locks, (*model).anyOutside) {
		s.checkWaiting()
	}
}

func (s *stack) String() string {
	text := ""
	for _, u := range s.machines {
		for _, id := range slices.Sorted(maps.Keys(u.open)) {
			text += fmt.Sprintf("\nprocess %d: %+v", u.n, *u.open[id])
		}
	}
	for _, m := range s.locks {
		text += "\n" + m.String()
	}
	return text
}

func (s *stack) expireSessions() {
	for _, m := range s.locks {
		m.expireSessions()
	}
}

func (s *stack) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"acquire":          func(t *rapid.T) { s.acquire(t, s.drawMachine()) },
		"cancel":           func(*rapid.T) { u, r := s.drawRequest("waiting"); s.end(u, r, s.cancel) },
		"withdraw a grant": func(*rapid.T) { u, r := s.drawRequest("held"); s.end(u, r, s.cancel) },
		"release":          func(*rapid.T) { u, r := s.drawRequest("held"); s.end(u, r, s.release) },
		"message arrives": func(t *rapid.T) {
			u := s.drawMachine()
			s.deliver(u, rapid.SampledFrom(u.states).Draw(t, "State"), rapid.Bool().Draw(t, "to the State"))
		},
		"lose the session": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			for _, l := range s.drawMachine().states {
				l.lock.loseSession(l.process)
				l.lock.connect(l.process)
			}
		},
		"expire lost sessions": func(*rapid.T) { s.expireSessions() },
		"idle timer fires": func(t *rapid.T) {
			u := s.drawMachine()
			if !u.timerRuns {
				t.Skip("no timer")
			}
			u.timerRuns = false
			s.stepLocalQueue(u, (*localqueue.Queue).IdleTimedOut)
		},
		"time budget is used": func(t *rapid.T) {
			u := s.drawMachine()
			if u.localQueue == nil || len(u.localQueue.NodeHolds()) == 0 {
				t.Skip("no node hold")
			}
			s.stepLocalQueue(u, func(l *localqueue.Queue) { l.TimeBudgetUsed(u.first) })
		},
		"drain": func(*rapid.T) { s.drain() },
		"":      func(*rapid.T) {},
	}
	for i, lock := range s.locks {
		for name, action := range lock.stackActions() {
			actions[fmt.Sprintf("%d: %s", i, name)] = action
		}
	}
	return actions
}

// run runs many requests, deliveries and, less often, any other actions.
func (s *stack) run() {
	actions := s.actions()
	deliveries := []string{"message arrives", "message arrives"}
	for i := range s.locks {
		for _, name := range []string{"serve", "answer arrives", "read behind a create", "follower catches up"} {
			deliveries = append(deliveries, fmt.Sprintf("%d: %s", i, name))
		}
	}
	s.t.Repeat(map[string]func(*rapid.T){
		"owners ask":      machinetest.Several(3, actions, "acquire", "acquire", "acquire", "release", "cancel", "withdraw a grant"),
		"server answers":  machinetest.Several(30, actions, deliveries...),
		"with any action": machinetest.Several(3, actions, slices.Sorted(maps.Keys(actions))...),
	})
}

// finish has all owners release. Each request must end, and nothing may be left.
func (s *stack) finish() {
	for range 1000 {
		s.expireSessions()
		for _, m := range s.locks {
			for _, p := range m.processes {
				if s.othersDelete { // a Tick notices the deletion of a node without a watch
					m.tick(p)
				}
			}
			m.tickOutside()
			for _, n := range m.inOrder() {
				if n.process == nil {
					m.deleteNode(n.name)
				}
			}
		}
		s.drain()
		open := 0
		for _, u := range s.machines {
			for _, id := range slices.Sorted(maps.Keys(u.open)) {
				open++
				if r := u.open[id]; r.state == "held" {
					s.end(u, r, s.release)
				}
			}
			if u.timerRuns {
				u.timerRuns = false
				s.stepLocalQueue(u, (*localqueue.Queue).IdleTimedOut)
				open++
			}
		}
		if open == 0 {
			break
		}
	}
	s.drain()
	for _, u := range s.machines {
		for _, l := range u.states {
			if p := l.process; len(u.open)+len(p.open)+p.state.requests.Len()+len(p.state.owners) > 0 {
				s.t.Fatalf("process %d: %v and below %v are open, owners %v: %s", u.n, u.open, p.open, p.state.owners, s)
			}
		}
		s.checkEmpty(u)
	}
	for _, m := range s.locks {
		m.finish()
	}
}

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
	"github.com/actorlock/actorlock/actors/internal/stack"
	"github.com/actorlock/actorlock/actors/queue"
)

// stacks are a machine in each process above real States: a semaphore above the States of its request
// queue and of its leases, or a local queue above the State of the lock below.
type stacks struct {
	t            *rapid.T
	locks        []*model
	machines     []*upperMachine
	ids          requests.ID // the last one
	othersDelete bool

	// What differs between semaphores and local queues.
	draw         func(*rapid.T) requests.Incoming // a request
	checkWaiting func()                           // checks that no request waits that could hold

	// What the checks need.
	permits int                       // of a semaphore
	tokens  map[int]requests.Token    // the greatest by permits or kind
	owners  map[requests.Token]string // to whose request a local queue has granted a token
}

// upperMachine is the semaphore or the local queue of one process.
type upperMachine struct {
	n       int
	open    map[requests.ID]*ownerRequest
	states  []*lowerState // one of each lock
	stack   stack.Stack
	running bool // the stack

	acquiring []requests.ID // requests of a semaphore that acquire leases, in order

	localQueue *localqueue.Queue // or nil
	timerRuns  bool              // an IdleTimedOut is to come
	first      requests.ID       // of the request below that began the node hold
}

// run performs what follows from an event of the machine or of a State.
func (u *upperMachine) run() {
	if !u.running {
		u.running = true
		u.stack.Run()
		u.running = false
	}
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
func testStack(t *testing.T, newStacks func(*rapid.T) *stacks) {
	for name, othersDelete := range map[string]bool{"undisturbed": false, "nodes deleted by others": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newStacks(t)
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

func newStacks(t *rapid.T, rules ...queue.Rule) *stacks {
	s := &stacks{t: t, tokens: map[int]requests.Token{}, owners: map[requests.Token]string{}}
	processes := rapid.IntRange(2, 3).Draw(t, "processes")
	for _, rule := range rules {
		s.locks = append(s.locks, newModel(t, rule, processes))
	}
	for n := range processes {
		u := &upperMachine{n: n, open: map[requests.ID]*ownerRequest{}}
		u.stack.Below = func(f requests.Effect) { u.states[f.Below].perform(f) }
		for _, lock := range s.locks {
			l := &lowerState{lock: lock, process: lock.processes[n], requests: map[requests.ID]*nodeRequest{}}
			l.process.onEffects = func(effects []Effect) {
				for _, f := range effects {
					if f.Kind.IsNews() {
						l.noteNews(f)
						u.stack.Add(f.Effect)
					}
				}
				u.run()
			}
			u.states = append(u.states, l)
		}
		s.machines = append(s.machines, u)
	}
	return s
}

// nodeExists reports whether the node by which a request was granted exists. The State must have
// reported the loss if it does not.
func (s *stacks) nodeExists(l *lowerState, r *nodeRequest) bool {
	n := l.lock.nodes[r.node]
	exists := n != nil && n.process == l.process
	if !exists && !r.lost && l.process.open[r.id] == "held" && !s.othersDelete {
		s.t.Fatalf("process %d holds request %d without node %s: %s", l.process.n, r.id, r.node, l.lock)
	}
	return exists
}

// onAnswer checks an answer of a machine to an owner other than a grant.
func (s *stacks) onAnswer(u *upperMachine, f requests.Effect) {
	r := u.open[f.ID]
	switch k := f.Kind; {
	case k != requests.Refuse && k != requests.Lose && k != requests.ConfirmRelease:
	case r == nil:
		s.t.Fatalf("process %d: request %d is answered again by %v: %s", u.n, f.ID, k, s)
	case k == requests.Refuse && f.Reason == requests.NotAcquired && !r.Try:
		s.t.Fatalf("process %d: request %d is no try, and is refused as one: %s", u.n, f.ID, s)
	case k == requests.ConfirmRelease && r.state != "released", k == requests.Lose && r.state != "held":
		s.t.Fatalf("process %d: request %d is %s and is answered by %v: %s", u.n, f.ID, r.state, k, s)
	default:
		delete(u.open, f.ID)
	}
}

// recordToken records the token of a grant of so many permits, or of a kind.
func (s *stacks) recordToken(permitsOrKind int, token requests.Token) {
	if token.Compare(s.tokens[permitsOrKind]) > 0 {
		s.tokens[permitsOrKind] = token
	}
}

// eachHeld calls f with each request but one that is granted by nodes that exist.
func (s *stacks) eachHeld(but *ownerRequest, f func(*ownerRequest)) {
	for _, u := range s.machines {
		for _, r := range u.open {
			if r != but && r.state == "held" && s.nodesExist(u, r) {
				f(r)
			}
		}
	}
}

// nodesExist reports whether all nodes by which a request was granted exist.
func (s *stacks) nodesExist(u *upperMachine, r *ownerRequest) bool {
	all, l := true, u.states[len(u.states)-1]
	for _, node := range r.nodes {
		all = s.nodeExists(l, node) && all
	}
	return all
}

// acquire has an owner ask a machine.
func (s *stacks) acquire(u *upperMachine, r requests.Incoming) {
	s.ids++
	r.ID = s.ids
	u.open[r.ID] = &ownerRequest{Incoming: r, state: "waiting"}
	u.stack.Machine.Acquire(r)
	u.run()
}

func (s *stacks) drawMachine() *upperMachine {
	return rapid.SampledFrom(s.machines).Draw(s.t, "process")
}

func (s *stacks) drawRequest(state string) (*upperMachine, *ownerRequest) {
	u := s.drawMachine()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(u.open)), func(id requests.ID) bool { return u.open[id].state != state })
	return u, u.open[machinetest.Draw(s.t, ids, "request "+state)]
}

// cancel withdraws a request, or a grant.
func (s *stacks) cancel(u *upperMachine, r *ownerRequest) {
	u.stack.Machine.Cancel(r.ID, requests.Cancelled)
	u.run()
}

func (s *stacks) release(u *upperMachine, r *ownerRequest) {
	r.state = "released"
	u.stack.Machine.Release(r.ID)
	u.run()
}

// drain executes and delivers all that is in flight, and checks then that no request waits that
// could hold.
func (s *stacks) drain() {
	for rounds, busy := 0, true; busy; rounds++ {
		if busy = false; rounds > 1000 {
			s.t.Fatalf("the effects do not end: %s", s)
		}
		for _, m := range s.locks {
			m.drain()
		}
		for _, u := range s.machines {
			busy = busy || slices.ContainsFunc(u.states, func(l *lowerState) bool { return len(l.process.inFlight) > 0 })
		}
	}
	if !s.othersDelete && !slices.ContainsFunc(s.locks, (*model).anyOutside) {
		s.checkWaiting()
	}
}

func (s *stacks) String() string {
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

func (s *stacks) expireSessions() {
	for _, m := range s.locks {
		m.expireSessions()
	}
}

func (u *upperMachine) endTimer() {
	u.timerRuns = false
	u.localQueue.IdleTimedOut()
	u.run()
}

func (s *stacks) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"acquire":          func(t *rapid.T) { s.acquire(s.drawMachine(), s.draw(t)) },
		"cancel":           func(*rapid.T) { s.cancel(s.drawRequest("waiting")) },
		"withdraw a grant": func(*rapid.T) { s.cancel(s.drawRequest("held")) },
		"release":          func(*rapid.T) { s.release(s.drawRequest("held")) },
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
			u.endTimer()
		},
		"time budget is used": func(t *rapid.T) {
			u := s.drawMachine()
			if u.localQueue == nil {
				t.Skip("no local queue")
			}
			u.localQueue.TimeBudgetUsed(u.first)
			u.run()
		},
		"drain": func(*rapid.T) { s.drain() },
		"":      func(*rapid.T) {},
	}
	for i, lock := range s.locks {
		for name, action := range lock.actionsBelow() {
			actions[fmt.Sprintf("%d: %s", i, name)] = action
		}
	}
	return actions
}

// run runs many requests, deliveries and, less often, any other actions.
func (s *stacks) run() {
	actions := s.actions()
	var deliveries []string
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
func (s *stacks) finish() {
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
					s.release(u, r)
				}
			}
			if u.timerRuns {
				u.endTimer()
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
		if m := u.stack.Machine; !m.Idle() || m.Check() != nil {
			s.t.Fatalf("process %d: the machine has %+v: %s", u.n, m, s)
		}
	}
	for _, m := range s.locks {
		m.finish()
	}
}

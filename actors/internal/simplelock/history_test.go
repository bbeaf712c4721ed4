package simplelock

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// contenderModel is a server with a directory, and the processes whose Contenders use the lock in it. The server executes the
// effects of a process in their order, loses or refuses them at random, and its answers and events come in any order.
type contenderModel struct {
	t         *rapid.T
	zxid      int64
	nodes     map[string]*serverNode
	processes []*contenderProcess
	ids       requests.ID // the last one
	token     [2]int64    // the greatest of each kind

	// What the checks need.
	deletedByOther map[string]bool // owner nodes of contenders that have lost a node to another client
	proven         bool            // the message that is delivered shows that the process's nodes existed
}

// serverNode is a child of the directory: an owner node or the lock node.
type serverNode struct {
	czxid     int64
	owner     *contenderProcess
	data      string
	ownerNode string // of the lock node: the owner node that was created with it
}

// overwritable reports whether the owner of the lock node recognizes it by its czxid, and so without its data.
func (n *serverNode) overwritable() bool {
	return n.owner.contender.ownerNode == n.ownerNode && n.owner.contender.czxid == n.czxid
}

// contenderProcess is a Contender, its request, and what is on the way between the Contender and the server.
type contenderProcess struct {
	n         int
	contender *Contender
	epoch     uint64
	up        bool

	id    requests.ID // of its request, 0: none
	kind  queue.Kind
	try   bool
	holds string // the owner node by which it holds

	inFlight []machinetest.Effect // sent and not executed
	messages []contenderMessage   // sent to the process and not delivered
	watches  map[string]bool      // of nodes, and of the directory by the name ""
}

// contenderMessage is an event of the server. proves reports that the process's nodes existed when the server sent it.
type contenderMessage struct {
	contenderEvent
	proves bool
}

func (m *contenderModel) drawProcess() *contenderProcess {
	return rapid.SampledFrom(m.processes).Draw(m.t, "process")
}

// answer sends an event to a process.
func (m *contenderModel) answer(p *contenderProcess, e contenderEvent) {
	ownerNode, lock := m.nodes[p.contender.ownerNode], m.nodes[p.contender.lockNode]
	proves := ownerNode != nil && (!p.contender.writes() && lock == nil || p.contender.writes() && lock != nil && lock.ownerNode == p.contender.ownerNode)
	p.messages = append(p.messages, contenderMessage{e, proves})
}

func (m *contenderModel) step(p *contenderProcess, e contenderEvent) {
	for _, f := range slices.Clone(step(p.contender, e)) {
		switch f.Kind {
		case "Grant":
			m.checkGrant(p, f)
		case "Refuse":
			if f.ID != p.id || p.holds == "" && f.Reason == requests.NotAcquired && !p.try {
				m.t.Fatalf("%d: %+v, has %d", p.n, f, p.id)
			}
			p.id, p.holds = 0, ""
		case "Lose", "ConfirmRelease":
			if f.ID != p.id || p.holds == "" {
				m.t.Fatalf("%d: %+v, has %d", p.n, f, p.id)
			}
			p.id, p.holds = 0, ""
		case "NotifyContended":
		default:
			p.inFlight = append(p.inFlight, f)
		}
	}
}

// checkGrant checks that a contender may hold, and its token.
func (m *contenderModel) checkGrant(p *contenderProcess, f machinetest.Effect) {
	n := m.nodes[f.OwnerNode]
	if m.deletedByOther[f.OwnerNode] && f.ID == p.id && p.holds == "" { // the process learns of the deletion later
		if !m.proven {
			m.t.Fatalf("%d is granted by %s on an answer that was sent when its nodes did not exist", p.n, f.OwnerNode)
		}
		p.holds = f.OwnerNode
		return
	}
	if f.ID != p.id || p.holds != "" || n == nil || n.owner != p || n.czxid != f.Czxid || f.Generation != machinetest.GenerationAt(f.Czxid) {
		m.t.Fatalf("%d: %+v, has %d; node %+v", p.n, f, p.id, n)
	}
	for _, o := range m.processes {
		if o.holds != "" && !m.deletedByOther[o.holds] && (o.kind == queue.Exclusive || p.kind == queue.Exclusive) {
			m.t.Fatalf("%d holds beside %d", p.n, o.n)
		}
	}
	if f.Czxid <= m.token[queue.Exclusive] || p.kind == queue.Exclusive && f.Czxid <= m.token[queue.Shared] {
		m.t.Fatalf("%d: token %d after %v", p.n, f.Czxid, m.token)
	}
	m.token[p.kind] = max(m.token[p.kind], f.Czxid)
	p.holds = f.OwnerNode
}

// fireWatches wakes the processes that watch a node or the directory.
func (m *contenderModel) fireWatches(name string) {
	for _, p := range m.processes {
		for _, watched := range []string{name, ""} {
			if p.watches[watched] {
				delete(p.watches, watched)
				epoch := p.epoch
				m.answer(p, func(s *Contender) { s.Wake(epoch, watched) })
			}
		}
	}
}

func (m *contenderModel) createNode(p *contenderProcess, name, ownerNode string, data []byte) {
	m.nodes[name] = &serverNode{m.zxid, p, string(data), ownerNode}
	m.fireWatches(name)
}

func (m *contenderModel) deleteNode(name string) {
	delete(m.nodes, name)
	m.fireWatches(name)
}

// deleteByOther deletes a node for a client that is not its owner.
func (m *contenderModel) deleteByOther(name string) {
	if n := m.nodes[name]; name == m.processes[0].contender.lockNode {
		m.deletedByOther[n.ownerNode] = true
	} else {
		m.deletedByOther[name] = true
	}
	m.deleteNode(name)
}

// execute executes an effect, and returns the answer.
func (m *contenderModel) execute(p *contenderProcess, f machinetest.Effect) contenderEvent {
	m.zxid++
	done, missing := Transaction{Done: true}, transacted(f.Serial, Transaction{Missing: true})
	switch f.Kind {
	case "CreateNodes":
		if m.nodes[f.LockNode] != nil {
			return transacted(f.Serial, Transaction{})
		}
		if f.LockNode != "" {
			m.createNode(p, f.LockNode, f.OwnerNode, []byte(f.OwnerNode))
		}
		m.createNode(p, f.OwnerNode, "", f.Data)
		done.Generation, done.Czxid = machinetest.GenerationAt(m.zxid), m.zxid
	case "DeleteNodes":
		if slices.ContainsFunc(f.Nodes, func(name string) bool { return m.nodes[name] == nil }) {
			return missing
		}
		for _, name := range f.Nodes {
			if m.nodes[name].owner != p {
				m.deleteByOther(name)
			} else {
				m.deleteNode(name)
			}
		}
	case "ListDirectory":
		p.watches[""] = p.watches[""] || f.Watch
		names := slices.Sorted(maps.Keys(m.nodes))
		return func(s *Contender) { s.Listed(f.Serial, names) }
	case "WatchNodes":
		answer := NodesRead{Data: map[string][]byte{}, Czxids: map[string]int64{}}
		for _, name := range f.Nodes {
			if n := m.nodes[name]; n == nil {
				answer.Gone = append(answer.Gone, name)
			} else {
				p.watches[name] = true
				answer.Data[name], answer.Czxids[name] = []byte(n.data), n.czxid
			}
		}
		return func(s *Contender) { s.Watched(f.Serial, answer) }
	default:
		m.t.Fatalf("unknown effect %+v", f)
	}
	return transacted(f.Serial, done)
}

// serve executes and answers the first effect in flight of a process, except for the fault.
func (m *contenderModel) serve(p *contenderProcess, fault string) {
	if len(p.inFlight) == 0 {
		m.t.Skip("nothing in flight")
	}
	f := p.inFlight[0]
	p.inFlight = p.inFlight[1:]
	unknown := failed(f.Serial, requests.OutcomeUnknown)
	writes := f.Kind == "CreateNodes" || f.Kind == "DeleteNodes"
	switch {
	case fault == "lost before" && writes:
		m.answer(p, unknown)
	case fault == "lost after" && writes:
		m.execute(p, f)
		m.answer(p, unknown)
	case fault == "refused" && f.Kind != "CreateNodes":
		m.answer(p, failed(f.Serial, 14))
	default:
		m.answer(p, m.execute(p, f))
	}
}

func (m *contenderModel) deliver(p *contenderProcess, i int) {
	e := p.messages[i]
	p.messages = slices.Delete(p.messages, i, i+1)
	m.proven = e.proves
	m.step(p, e.contenderEvent)
	m.proven = false
}

// expire ends the session. The process knows before the nodes are deleted.
func (m *contenderModel) expire(p *contenderProcess) {
	m.step(p, func(s *Contender) { s.Session(p.epoch, false) })
	p.up, p.inFlight, p.messages, p.watches = false, nil, nil, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if m.nodes[name].owner == p {
			m.deleteNode(name)
		}
	}
}

func (m *contenderModel) connect(p *contenderProcess) {
	p.epoch++
	p.up = true
	m.step(p, func(s *Contender) { s.Session(p.epoch, true) })
}

// drain connects all processes, and executes and delivers all that is in flight, without faults.
func (m *contenderModel) drain() {
	for _, p := range m.processes {
		if !p.up {
			m.connect(p)
		}
	}
	for ticks := 0; ticks < 4; {
		busy := false
		for _, p := range m.processes {
			// Only sometimes: so the server executes other effects between an answer and its delivery.
			if len(p.inFlight) > 0 && rapid.Bool().Draw(m.t, "serve") {
				m.serve(p, "")
			} else if len(p.messages) > 0 {
				m.deliver(p, rapid.IntRange(0, len(p.messages)-1).Draw(m.t, "which"))
			}
			busy = busy || len(p.inFlight) > 0 || len(p.messages) > 0
		}
		if !busy {
			ticks++
			for _, p := range m.processes {
				m.step(p, (*Contender).Tick)
			}
		}
	}
}

// checkDrained checks the holders, waiters and nodes. Nothing may be in flight.
func (m *contenderModel) checkDrained() {
	holders, waiters := 0, 0
	for _, p := range m.processes {
		if p.holds != "" {
			holders++
			if m.deletedByOther[p.holds] {
				m.t.Fatalf("%d holds %s, and has not noticed the deletion", p.n, p.holds)
			}
		} else if p.id != 0 {
			waiters++
		}
	}
	if waiters > 0 && holders == 0 {
		m.t.Fatalf("%d wait and no contender holds: %v", waiters, m.nodes)
	}
	if lock := m.nodes[m.processes[0].contender.lockNode]; lock != nil && m.nodes[lock.ownerNode] == nil {
		m.t.Fatalf("%d has left the lock node of %s, which is gone: %v", lock.owner.n, lock.ownerNode, m.nodes)
	}
}

func (m *contenderModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			p := m.drawProcess()
			if p.id != 0 {
				t.Skip("it has a request")
			}
			m.ids++
			p.id, p.kind, p.try = m.ids, queue.Exclusive, rapid.IntRange(0, 3).Draw(t, "try") == 0
			if p.contender.shared {
				p.kind = rapid.SampledFrom([]queue.Kind{queue.Exclusive, queue.Shared}).Draw(t, "kind")
			}
			m.step(p, func(s *Contender) {
				s.Acquire(requests.Incoming{ID: p.id, Kind: p.kind, Try: p.try, NotifyContended: true, Data: fmt.Append(nil, p.id)})
			})
		},
		"cancel": func(t *rapid.T) {
			if p := m.drawProcess(); p.id != 0 {
				m.step(p, cancelled(p.id))
			}
		},
		"release": func(t *rapid.T) {
			if p := m.drawProcess(); p.holds != "" {
				m.step(p, func(s *Contender) { s.Release(p.id) })
			}
		},
		"serve": func(t *rapid.T) { m.serve(m.drawProcess(), "") },
		"fault": func(t *rapid.T) {
			m.serve(m.drawProcess(), rapid.SampledFrom([]string{"lost before", "lost after", "refused"}).Draw(t, "fault"))
		},
		"take away a node": func(t *rapid.T) {
			if len(m.nodes) > 0 && rapid.Bool().Draw(t, "really") {
				m.zxid++
				m.deleteByOther(rapid.SampledFrom(slices.Sorted(maps.Keys(m.nodes))).Draw(t, "node"))
			}
		},
		"overwrite the lock node": func(t *rapid.T) {
			lock := m.processes[0].contender.lockNode
			if n := m.nodes[lock]; n != nil && n.overwritable() && rapid.Bool().Draw(t, "really") {
				m.zxid++
				n.data = "overwritten"
				m.fireWatches(lock)
			}
		},
		"message arrives": func(t *rapid.T) {
			if p := m.drawProcess(); len(p.messages) > 0 {
				m.deliver(p, rapid.IntRange(0, len(p.messages)-1).Draw(t, "which"))
			}
		},
		"tick": func(t *rapid.T) { m.step(m.drawProcess(), (*Contender).Tick) },
		"session": func(t *rapid.T) {
			if p := m.drawProcess(); !p.up {
				m.connect(p)
			} else if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				m.expire(p)
			}
		},
		"run all effects": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
				m.drain()
				m.checkDrained()
			}
		},
	}
}

// The server loses and refuses requests, and other clients delete nodes at any time. No contender holds beside a writer
// and tokens grow, except for contenders with a deleted node, which learn of the deletion. No contender waits for a free
// lock or for a lock node that it has left, and no node is left in the end.
func TestHistories(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("readers %v", shared), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &contenderModel{t: t, nodes: map[string]*serverNode{}, deletedByOther: map[string]bool{}}
				for n := range 3 {
					m.processes = append(m.processes, &contenderProcess{n: n, contender: New(&recorder{}, "lock", shared, lockqueue.Incarnation{byte(n)}), watches: map[string]bool{}})
				}
				machinetest.Repeat(t, m.actions())
				m.drain()
				m.checkDrained()
				for _, p := range m.processes {
					if p.id != 0 {
						m.step(p, cancelled(p.id))
					}
				}
				m.drain()
				for _, p := range m.processes {
					if !p.contender.Idle() || len(m.nodes) > 0 {
						t.Fatalf("%d is not idle, or nodes are left: %v", p.n, m.nodes)
					}
				}
			})
		})
	}
}

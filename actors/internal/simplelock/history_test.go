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

// simpleWorld is a directory where the contenders of some processes meet. Their effects are done, lost or
// refused at random, and they hear of it in any order.
type simpleWorld struct {
	t     *rapid.T
	zxid  int64
	nodes map[string]*simpleNode
	all   []*contenderProcess
	token [2]int64 // of the last reader and writer
	ids   requests.ID

	struck map[string]bool // owner nodes of contenders that lost a node to another client
	proven bool            // by the event in hand; see news
}

type simpleNode struct {
	czxid     int64
	owner     *contenderProcess
	data      string
	ownerNode string // of the transaction that made the lock node
}

// overwritable reports whether the lock node can be told for its owner's without its data. While
// the owner has not heard of the owner node's czxid, it cannot.
func (n *simpleNode) overwritable() bool {
	return n.owner.s.ownerNode == n.ownerNode && n.owner.s.czxid == n.czxid
}

type contenderProcess struct {
	n       int
	s       *Contender
	epoch   uint64
	up      bool
	id      requests.ID // of its request, 0: none
	kind    queue.Kind
	try     bool
	holds   string   // a node
	effects []effect // not done yet
	news    []news   // not heard yet
	watches map[string]bool
}

// news is an event; proves reports whether the process's nodes existed when the server answered.
type news struct {
	event
	proves bool
}

// tell answers a process.
func (p *simpleWorld) tell(v *contenderProcess, e event) {
	ownerNode, lock := p.nodes[v.s.ownerNode], p.nodes[v.s.lockNode]
	proves := ownerNode != nil && (!v.s.writes() && lock == nil || v.s.writes() && lock != nil && lock.ownerNode == v.s.ownerNode)
	v.news = append(v.news, news{e, proves})
}

func (p *simpleWorld) step(v *contenderProcess, e event) {
	for _, f := range slices.Clone(step(v.s, e)) {
		switch f.kind {
		case "Grant":
			p.granted(v, f)
		case "Refuse":
			if f.id != v.id || v.holds == "" && f.reason == requests.NotAcquired && !v.try {
				p.t.Fatalf("%d: %+v, has %d", v.n, f, v.id)
			}
			v.id, v.holds = 0, ""
		case "Lose", "ConfirmRelease":
			if f.id != v.id || v.holds == "" {
				p.t.Fatalf("%d: %+v, has %d", v.n, f, v.id)
			}
			v.id, v.holds = 0, ""
		case "NotifyContended":
		default:
			v.effects = append(v.effects, f)
		}
	}
}

func (p *simpleWorld) granted(v *contenderProcess, f effect) {
	n := p.nodes[f.ownerNode]
	if p.struck[f.ownerNode] && f.id == v.id && v.holds == "" { // it learns of the deletion later
		if !p.proven {
			p.t.Fatalf("%d is granted by %s, whose nodes were not there when that was answered", v.n, f.ownerNode)
		}
		v.holds = f.ownerNode
		return
	}
	if f.id != v.id || v.holds != "" || n == nil || n.owner != v || n.czxid != f.czxid || f.generation != machinetest.GenerationAt(f.czxid) {
		p.t.Fatalf("%d: %+v, has %d; node %+v", v.n, f, v.id, n)
	}
	for _, o := range p.all {
		if o.holds != "" && !p.struck[o.holds] && (o.kind == queue.Exclusive || v.kind == queue.Exclusive) {
			p.t.Fatalf("%d holds beside %d", v.n, o.n)
		}
	}
	if f.czxid <= p.token[queue.Exclusive] || v.kind == queue.Exclusive && f.czxid <= p.token[queue.Shared] {
		p.t.Fatalf("%d: token %d after %v", v.n, f.czxid, p.token)
	}
	p.token[v.kind] = max(p.token[v.kind], f.czxid)
	v.holds = f.ownerNode
}

// change wakes the processes that watch a node or the directory.
func (p *simpleWorld) change(name string) {
	for _, v := range p.all {
		for _, watched := range []string{name, ""} {
			if v.watches[watched] {
				delete(v.watches, watched)
				epoch := v.epoch
				p.tell(v, func(s *Contender) { s.Wake(epoch, watched) })
			}
		}
	}
}

func (p *simpleWorld) make(v *contenderProcess, name, ownerNode string, data []byte) {
	p.nodes[name] = &simpleNode{p.zxid, v, string(data), ownerNode}
	p.change(name)
}

func (p *simpleWorld) remove(name string) {
	delete(p.nodes, name)
	p.change(name)
}

// strike deletes a node that its owner has not asked to delete.
func (p *simpleWorld) strike(name string) {
	if n := p.nodes[name]; name == p.all[0].s.lockNode {
		p.struck[n.ownerNode] = true
	} else {
		p.struck[name] = true
	}
	p.remove(name)
}

// do performs an effect, and returns its answer.
func (p *simpleWorld) do(v *contenderProcess, f effect) event {
	p.zxid++
	done, missing := Transaction{Done: true}, transacted(f.serial, Transaction{Missing: true})
	switch f.kind {
	case "CreateNodes":
		if p.nodes[f.lockNode] != nil {
			return transacted(f.serial, Transaction{})
		}
		if f.lockNode != "" {
			p.make(v, f.lockNode, f.ownerNode, []byte(f.ownerNode))
		}
		p.make(v, f.ownerNode, "", f.data)
		done.Generation, done.Czxid = machinetest.GenerationAt(p.zxid), p.zxid
	case "DeleteNodes":
		if slices.ContainsFunc(f.nodes, func(name string) bool { return p.nodes[name] == nil }) {
			return missing
		}
		for _, name := range f.nodes {
			if p.nodes[name].owner != v {
				p.strike(name)
			} else {
				p.remove(name)
			}
		}
	case "ListDirectory":
		v.watches[""] = v.watches[""] || f.watch
		names := slices.Sorted(maps.Keys(p.nodes))
		return func(s *Contender) { s.Listed(f.serial, names) }
	case "WatchNodes":
		answer := NodesRead{Data: map[string][]byte{}, Czxids: map[string]int64{}}
		for _, name := range f.nodes {
			if n := p.nodes[name]; n == nil {
				answer.Gone = append(answer.Gone, name)
			} else {
				v.watches[name] = true
				answer.Data[name], answer.Czxids[name] = []byte(n.data), n.czxid
			}
		}
		return func(s *Contender) { s.Watched(f.serial, answer) }
	default:
		p.t.Fatalf("unknown effect %+v", f)
	}
	return transacted(f.serial, done)
}

func (p *simpleWorld) serve(v *contenderProcess, fault string) {
	if len(v.effects) == 0 {
		p.t.Skip("nothing is asked")
	}
	f := v.effects[0]
	v.effects = v.effects[1:]
	unknown := failed(f.serial, requests.OutcomeUnknown)
	writes := f.kind == "CreateNodes" || f.kind == "DeleteNodes"
	switch {
	case fault == "lost before" && writes:
		p.tell(v, unknown)
	case fault == "lost after" && writes:
		p.do(v, f)
		p.tell(v, unknown)
	case fault == "refused" && f.kind != "CreateNodes":
		p.tell(v, failed(f.serial, 14))
	default:
		p.tell(v, p.do(v, f))
	}
}

func (p *simpleWorld) hear(v *contenderProcess, i int) {
	e := v.news[i]
	v.news = slices.Delete(v.news, i, i+1)
	p.proven = e.proves
	p.step(v, e.event)
	p.proven = false
}

// expire ends the session: the process knows before the nodes go.
func (p *simpleWorld) expire(v *contenderProcess) {
	p.step(v, func(s *Contender) { s.Session(v.epoch, false) })
	v.up, v.effects, v.news, v.watches = false, nil, nil, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.nodes[name].owner == v {
			p.remove(name)
		}
	}
}

func (p *simpleWorld) connect(v *contenderProcess) {
	v.epoch++
	v.up = true
	p.step(v, func(s *Contender) { s.Session(v.epoch, true) })
}

// rest lets all that is under way come to its end, without faults.
func (p *simpleWorld) rest() {
	for _, v := range p.all {
		if !v.up {
			p.connect(v)
		}
	}
	for ticks := 0; ticks < 4; {
		busy := false
		for _, v := range p.all {
			// Now and then, so that something may happen between an answer and its hearing.
			if len(v.effects) > 0 && rapid.Bool().Draw(p.t, "serve") {
				p.serve(v, "")
			} else if len(v.news) > 0 {
				p.hear(v, rapid.IntRange(0, len(v.news)-1).Draw(p.t, "which"))
			}
			busy = busy || len(v.effects) > 0 || len(v.news) > 0
		}
		if !busy {
			ticks++
			for _, v := range p.all {
				p.step(v, (*Contender).Tick)
			}
		}
	}
}

func (p *simpleWorld) checkRest() {
	holders, waiters := 0, 0
	for _, v := range p.all {
		if v.holds != "" {
			holders++
			if p.struck[v.holds] {
				p.t.Fatalf("%d holds %s, and has not noticed the deletion", v.n, v.holds)
			}
		} else if v.id != 0 {
			waiters++
		}
	}
	if waiters > 0 && holders == 0 {
		p.t.Fatalf("%d wait and none holds: %v", waiters, p.nodes)
	}
	if lock := p.nodes[p.all[0].s.lockNode]; lock != nil && p.nodes[lock.ownerNode] == nil {
		p.t.Fatalf("%d has left the lock of %s, which is gone: %v", lock.owner.n, lock.ownerNode, p.nodes)
	}
}

func (p *simpleWorld) actions() map[string]func(*rapid.T) {
	some := func(t *rapid.T) *contenderProcess { return rapid.SampledFrom(p.all).Draw(t, "process") }
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			v := some(t)
			if v.id != 0 {
				t.Skip("it has a request")
			}
			p.ids++
			v.id, v.kind, v.try = p.ids, queue.Exclusive, rapid.IntRange(0, 3).Draw(t, "try") == 0
			if v.s.shared {
				v.kind = rapid.SampledFrom([]queue.Kind{queue.Exclusive, queue.Shared}).Draw(t, "kind")
			}
			p.step(v, func(s *Contender) {
				s.Acquire(requests.Incoming{ID: v.id, Kind: v.kind, Try: v.try, NotifyContended: true, Data: fmt.Append(nil, v.id)})
			})
		},
		"cancel": func(t *rapid.T) {
			if v := some(t); v.id != 0 {
				p.step(v, cancelled(v.id))
			}
		},
		"release": func(t *rapid.T) {
			if v := some(t); v.holds != "" {
				p.step(v, func(s *Contender) { s.Release(v.id) })
			}
		},
		"serve": func(t *rapid.T) { p.serve(some(t), "") },
		"fault": func(t *rapid.T) {
			p.serve(some(t), rapid.SampledFrom([]string{"lost before", "lost after", "refused"}).Draw(t, "fault"))
		},
		"strike": func(t *rapid.T) {
			if len(p.nodes) > 0 && rapid.Bool().Draw(t, "really") {
				p.zxid++
				p.strike(rapid.SampledFrom(slices.Sorted(maps.Keys(p.nodes))).Draw(t, "node"))
			}
		},
		"overwrite": func(t *rapid.T) {
			lock := p.all[0].s.lockNode
			if n := p.nodes[lock]; n != nil && n.overwritable() && rapid.Bool().Draw(t, "really") {
				p.zxid++
				n.data = "overwritten"
				p.change(lock)
			}
		},
		"hear": func(t *rapid.T) {
			if v := some(t); len(v.news) > 0 {
				p.hear(v, rapid.IntRange(0, len(v.news)-1).Draw(t, "which"))
			}
		},
		"tick": func(t *rapid.T) { p.step(some(t), (*Contender).Tick) },
		"session": func(t *rapid.T) {
			if v := some(t); !v.up {
				p.connect(v)
			} else if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				p.expire(v)
			}
		},
		"rest": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
				p.rest()
				p.checkRest()
			}
		},
	}
}

// TestHistories has contenders meet any faults, and other clients delete any nodes at any time. No
// contender holds beside a writer and tokens grow, except for contenders with a deleted node, which
// learn of it. No contender waits for a free lock or for a lock node that it has left, and no node
// is left in the end.
func TestHistories(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("readers %v", shared), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := &simpleWorld{t: t, nodes: map[string]*simpleNode{}, struck: map[string]bool{}}
				for n := range 3 {
					p.all = append(p.all, &contenderProcess{n: n, s: New(&recorder{}, "lock", shared, lockqueue.Incarnation{byte(n)}), watches: map[string]bool{}})
				}
				machinetest.Repeat(t, p.actions())
				p.rest()
				p.checkRest()
				for _, v := range p.all {
					if v.id != 0 {
						p.step(v, cancelled(v.id))
					}
				}
				p.rest()
				for _, v := range p.all {
					if !v.s.Idle() || len(p.nodes) > 0 {
						t.Fatalf("%d is not idle, or nodes are left: %v", v.n, p.nodes)
					}
				}
			})
		})
	}
}

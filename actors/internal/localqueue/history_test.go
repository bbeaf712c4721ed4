package localqueue

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// queueModel is a Queue, its owners, and the lock below, which grants and refuses nodes at random,
// takes them away, and reports that contenders of other processes wait for them.
type queueModel struct {
	t         *rapid.T
	queue     *Queue
	rule      queue.Rule
	timerRuns bool // an IdleTimedOut is to come

	// The requests.
	ids     requests.ID // the last one
	open    map[requests.ID]*modelRequest
	waiting []*modelRequest // in order
	token   requests.Token  // of the last grant

	// The node hold, granted or asked for.
	nodes    []*node     // at most two
	first    requests.ID // of its first node
	czxid    int64
	refused  bool // the lock below has refused the second node
	granted  int  // number of grants made of it
	budget   int  // of grants while other processes wait
	timeUsed bool // the time budget is used
}

type modelRequest struct {
	id    requests.ID
	kind  queue.Kind
	asked bool // it has had a RequestRevoke
	owner string
	try   bool
	stage progress    // queued, creating: it waits for a second node beside the one by which its owner holds; held or releasing
	by    requests.ID // of the node by which it holds
	token requests.Token
	place requests.ID // of the owner's first request, with which its later ones share the place
}

// releasing is the stage of a request whose release is not confirmed.
const releasing = refused + 1

// ownerHolds reports whether the owner of a request counts among the holders because of it.
func (r *modelRequest) ownerHolds() bool { return r.stage == held || r.stage == creating }

func (m *queueModel) nodeOf(id requests.ID) *node {
	for _, n := range m.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func (m *queueModel) contended() bool {
	return slices.ContainsFunc(m.nodes, func(n *node) bool { return n.contended })
}

func (m *queueModel) revoked() bool {
	return slices.ContainsFunc(m.nodes, func(n *node) bool { return n.revoked })
}

func (m *queueModel) budgetUsed() bool {
	return m.revoked() || m.contended() && (m.timeUsed || m.granted >= m.budget)
}

func (m *queueModel) step(e queueEvent) {
	for _, f := range step(m.queue, e) {
		m.perform(f)
	}
	m.check()
}

func (m *queueModel) perform(f requests.Effect) {
	r := m.open[f.ID]
	switch f.Kind {
	case requests.Acquire:
		m.acquireNode(f)
	case requests.Cancel:
		n := m.nodeOf(f.ID)
		if n == nil {
			m.t.Fatalf("node %d is released and was not acquired", f.ID)
		}
		m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
		for _, r := range m.open {
			if r.stage == held && r.by == f.ID {
				m.t.Fatalf("node %d is released while request %d holds by it", f.ID, r.id)
			}
		}
	case requests.NoteNode:
		if n := m.nodeOf(f.ID); n == nil || n.stage != held || f.First != (f.ID == m.first) {
			m.t.Fatalf("%+v is noted, of the nodes %v", f, m.nodes)
		}
	case requests.StartIdleTimer:
		if m.timerRuns {
			m.t.Fatal("a second timer is started")
		}
		m.timerRuns = true
	case requests.Grant:
		if f.Token != machinetest.TokenAt(f.Token.Czxid, f.Token.Step) {
			m.t.Fatalf("request %d is granted with the generation of another czxid: %v", f.ID, f.Token)
		}
		m.grant(r, m.nodeOf(f.By), f.Token)
	case requests.Refuse:
		if r == nil {
			m.t.Fatalf("request %d is refused but was not open", f.ID)
		}
		m.forget(r)
	case requests.RequestRevoke:
		if r.stage != held || !m.revoked() {
			m.t.Fatalf("request %d is asked to release in stage %d, by the nodes %v", f.ID, r.stage, m.nodes)
		}
		r.asked = true
	case requests.Lose:
		if r.stage != held {
			m.t.Fatalf("request %d is lost but was in stage %d", f.ID, r.stage)
		}
		m.forget(r)
	case requests.ConfirmRelease:
		if r.stage != releasing {
			m.t.Fatalf("request %d is released but was in stage %d", f.ID, r.stage)
		}
		m.forget(r)
	}
}

func (m *queueModel) forget(r *modelRequest) {
	delete(m.open, r.id)
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelRequest) bool { return o == r })
}

// acquireNode checks that a node is the first, or a second one that the rule lets an owner have
// beside the first.
func (m *queueModel) acquireNode(f requests.Effect) {
	r := f.Request
	switch {
	case len(m.nodes) == 0:
		m.first, m.timeUsed, m.refused, m.granted = f.ID, false, false, 0
	case len(m.nodes) > 1 || m.nodes[0].stage != held || r.Try || r.Kind == m.nodes[0].kind || !m.rule.EntersFrom(r.Kind).Has(m.nodes[0].kind) ||
		uint32(f.ID) == uint32(m.nodes[0].id):
		m.t.Fatalf("node %d of kind %d is asked for beside %v", f.ID, r.Kind, m.nodes)
	}
	m.nodes = append(m.nodes, &node{stage: creating, id: f.ID, kind: r.Kind, try: r.Try})
}

// grant checks that no holder blocks a grant, that it passes no earlier request, and its token.
func (m *queueModel) grant(r *modelRequest, by *node, token requests.Token) {
	if by == nil || by.stage != held {
		m.t.Fatalf("request %d is granted by a node that is not held", r.id)
	}
	if by.kind != r.kind && (by.kind == queue.Shared || m.rule.EntersFrom(r.kind).Has(by.kind)) {
		m.t.Fatalf("request %d is granted by a node of kind %d", r.id, by.kind)
	}
	reentry := r.stage == creating // or the owner has just got a node for its first request
	for _, o := range m.open {
		switch {
		case !o.ownerHolds() || o == r:
		case o.owner == r.owner && r.owner != "":
			reentry = true
			if o.token != token {
				m.t.Fatalf("request %d has token %v, its owner %v", r.id, token, o.token)
			}
		case m.rule.BlockedBy[r.kind].Has(o.kind):
			m.t.Fatalf("request %d is granted beside %d", r.id, o.id)
		}
	}
	if reentry && r.stage == creating && r.token != token {
		m.t.Fatalf("request %d has token %v, its owner had %v", r.id, token, r.token)
	}
	if !reentry {
		if m.waiting[0].place != r.place {
			m.t.Fatalf("request %d is granted before %d, which is first", r.id, m.waiting[0].id)
		}
		if token.Compare(m.token) <= 0 || token.Czxid != m.czxid {
			m.t.Fatalf("request %d has token %v after %v, by a node hold with czxid %d", r.id, token, m.token, m.czxid)
		}
		m.token = token
		if m.granted++; m.revoked() || m.contended() && (m.timeUsed || m.granted > m.budget) {
			m.t.Fatalf("request %d is grant %d of the node hold (time used: %t, revoked: %t) while others want it", r.id, m.granted, m.timeUsed, m.revoked())
		}
	}
	r.stage, r.token, r.by = held, token, by.id
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelRequest) bool { return o == r })
}

func (m *queueModel) drawRequest(stage progress) *modelRequest {
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(m.open)), func(id requests.ID) bool { return m.open[id].stage != stage })
	return m.open[machinetest.Draw(m.t, ids, "request")]
}

func (m *queueModel) drawNode(stage progress) *node {
	return machinetest.Draw(m.t, slices.DeleteFunc(slices.Clone(m.nodes), func(n *node) bool { return n.stage != stage }), "node")
}

func (m *queueModel) release(r *modelRequest) {
	r.stage = releasing
	m.step(func(l *Queue) { l.Release(r.id) })
}

// answer answers the request for a node.
func (m *queueModel) answer(n *node, news requests.Effect) {
	news.ID = n.id
	m.step(func(l *Queue) { l.Answered(news) })
}

func (m *queueModel) nodeGranted(n *node) {
	n.stage = held
	if n.id == m.first {
		m.czxid++
	}
	m.answer(n, requests.Effect{Kind: requests.Grant, Token: machinetest.TokenAt(m.czxid, uint32(m.czxid%3))})
}

// acquire adds a request of an owner that may have others, which wait or hold.
func (m *queueModel) acquire(t *rapid.T) {
	m.ids++
	r := &modelRequest{id: m.ids, place: m.ids, stage: queued,
		kind:  queue.Kind(rapid.IntRange(0, len(m.rule.Markers)-1).Draw(t, "kind")),
		owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
		try:   rapid.IntRange(0, 4).Draw(t, "try") == 0}
	for _, o := range m.open {
		switch {
		case r.owner == "" || o.owner != r.owner:
		case o.ownerHolds():
			r.stage, r.token = creating, o.token
		default:
			r.place = o.place
		}
	}
	m.open[r.id] = r
	if r.stage == queued {
		m.waiting = append(m.waiting, r)
		slices.SortStableFunc(m.waiting, func(x, y *modelRequest) int { return int(x.place) - int(y.place) })
	}
	m.step(func(l *Queue) { l.Acquire(requests.Incoming{ID: r.id, Owner: r.owner, Kind: r.kind, Try: r.try}) })
}

func (m *queueModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": m.acquire,
		"cancel":  func(*rapid.T) { m.step(func(l *Queue) { l.Cancel(m.drawRequest(queued).id, requests.Cancelled) }) },
		"withdraw a grant": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				r := m.drawRequest(held)
				r.stage = releasing
				m.step(func(l *Queue) { l.Cancel(r.id, requests.Cancelled) })
			}
		},
		"cancel a downgrade": func(*rapid.T) { m.step(func(l *Queue) { l.Cancel(m.drawRequest(creating).id, requests.Cancelled) }) },
		"release":            func(*rapid.T) { m.release(m.drawRequest(held)) },
		"node is granted":    func(*rapid.T) { m.nodeGranted(m.drawNode(creating)) },
		"node is refused": func(t *rapid.T) {
			n, why := m.drawNode(creating), rapid.SampledFrom([]requests.Reason{requests.NotAcquired, requests.SequenceExhausted}).Draw(t, "why")
			if why == requests.NotAcquired && !n.try {
				t.Skip("it is no try")
			}
			m.refused = n.id != m.first
			m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
			m.answer(n, requests.Effect{Kind: requests.Refuse, Reason: why})
		},
		"loss of a node": func(*rapid.T) {
			m.answer(m.drawNode(held), requests.Effect{Kind: requests.Lose, Reason: requests.SessionLost})
		},
		"wait of another process": func(*rapid.T) {
			n := m.drawNode(held)
			n.contended = true
			m.answer(n, requests.Effect{Kind: requests.NotifyContended})
		},
		"revoke of a node": func(*rapid.T) {
			n := m.drawNode(held)
			n.revoked = true
			m.answer(n, requests.Effect{Kind: requests.RequestRevoke})
		},
		"time budget is used": func(*rapid.T) {
			m.drawNode(held)
			m.timeUsed = true
			m.step(func(l *Queue) { l.TimeBudgetUsed(m.first) })
		},
		"answer for a former node hold": func(t *rapid.T) {
			number := m.queue.lastNumber - uint32(rapid.IntRange(0, 3).Draw(t, "ago"))
			id := requests.ID(number)<<32 | requests.ID(rapid.IntRange(1, 2).Draw(t, "place"))
			if m.nodeOf(id) != nil || id == m.first {
				t.Skip("it is not a former one")
			}
			kind := requests.EffectKind(rapid.IntRange(int(requests.Grant), int(requests.NotifyContended)+1).Draw(t, "kind"))
			m.step(func(l *Queue) {
				if kind > requests.NotifyContended {
					l.TimeBudgetUsed(id)
				} else {
					l.Answered(requests.Effect{Kind: kind, ID: id, Reason: requests.SessionLost})
				}
			})
		},
		"idle timer fires": func(t *rapid.T) {
			if !m.timerRuns {
				t.Skip("no timer")
			}
			m.timerRuns = false
			m.step((*Queue).IdleTimedOut)
		},
		"": func(*rapid.T) {},
	}
}

// finish has all owners release. Nothing may be left.
func (m *queueModel) finish() {
	for range 1000 {
		for _, n := range m.nodes {
			if n.stage == creating {
				m.nodeGranted(n)
				break
			}
		}
		for _, r := range m.open {
			if r.stage == held {
				m.release(r)
				break
			}
		}
		if m.timerRuns {
			m.timerRuns = false
			m.step((*Queue).IdleTimedOut)
		}
	}
	l := m.queue
	if len(m.open)+len(m.nodes) > 0 || !l.Idle() || len(l.owners)+l.tries > 0 || !l.holders.empty() || !l.waiting.empty() ||
		l.holders.kinds.Count(^queue.KindSet(0)) > 0 || l.waiting.kinds.Count(^queue.KindSet(0)) > 0 {
		m.t.Fatalf("%d requests are open, with the nodes %v; the local queue has %+v", len(m.open), m.nodes, l)
	}
}

func testHistories(t *testing.T, rule queue.Rule) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.IntRange(1, 4).Draw(t, "budget")
		m := &queueModel{t: t, rule: rule, budget: budget, queue: New(rule, uint32(budget)), open: map[requests.ID]*modelRequest{}}
		machinetest.Repeat(t, m.actions())
		m.finish()
	})
}

func TestHistoriesOfAMutex(t *testing.T) { testHistories(t, queue.Mutex()) }

func TestHistoriesOfAReadWriteLock(t *testing.T) { testHistories(t, queue.ReadWrite()) }

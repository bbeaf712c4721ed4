package localqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// model is a Queue, its owners, and the lock below, which grants, refuses, is lost and is contended
// at random.
type model struct {
	t      *rapid.T
	queue  *Queue
	rule   queue.Rule
	grants int
	ids    requests.ID
	open   map[requests.ID]*modelRequest
	line   []*modelRequest // waiting, in the order in which they came

	nodes     []*node // of the node hold that is asked for or granted, the first node first
	first     uint64  // its serial number
	refused   bool    // the node that was asked for beside it
	timeUsed  bool
	granted   int // grants of the node hold
	czxid     int64
	token     [2]int64 // of the last grant
	timerRuns bool
}

type modelRequest struct {
	id     requests.ID
	kind   queue.Kind
	owner  string
	try    bool
	stage  progress // creating: it waits for a node beside what its owner holds
	by     uint64
	token  [2]int64
	places requests.ID // of the owner's first request, with which the others share it
}

// uses reports whether a request has its owner among the holders.
func (a *modelRequest) uses() bool { return a.stage == held || a.stage == creating }

// leaving is the stage of a request whose release is under way.
const leaving = refused + 1

func (b *model) nodeOf(serial uint64) *node {
	for _, p := range b.nodes {
		if p.serial == serial {
			return p
		}
	}
	return nil
}

func (b *model) contended() bool {
	return slices.ContainsFunc(b.nodes, func(p *node) bool { return p.contended })
}

func (b *model) budgetUsed() bool { return b.contended() && (b.timeUsed || b.granted >= b.grants) }

func (b *model) step(e queueCall) {
	for _, f := range step(b.queue, e) {
		b.perform(f)
	}
	b.check()
}

func (b *model) perform(f machinetest.LocalEffect) {
	a := b.open[f.ID]
	switch f.Kind {
	case "AcquireNode":
		b.acquireNode(f)
	case "ReleaseNode":
		p := b.nodeOf(f.Serial)
		if p == nil {
			b.t.Fatalf("node hold %d is returned and not here", f.Serial)
		}
		b.nodes = slices.DeleteFunc(b.nodes, func(o *node) bool { return o == p })
		for _, a := range b.open {
			if a.stage == held && a.by == f.Serial {
				b.t.Fatalf("the node hold is returned while %d holds by it", a.id)
			}
		}
	case "StartIdleTimer":
		if b.timerRuns {
			b.t.Fatal("a second timer")
		}
		b.timerRuns = true
	case "Grant":
		if f.Generation != machinetest.GenerationAt(f.Czxid) {
			b.t.Fatalf("request %d is granted with generation %d of czxid %d", f.ID, f.Generation, f.Czxid)
		}
		b.grant(a, b.nodeOf(f.Serial), [2]int64{f.Czxid, int64(f.Step)})
	case "Refuse":
		if a == nil {
			b.t.Fatalf("request %d is refused but was not open", f.ID)
		}
		b.forget(a)
	case "Lose":
		if a.stage != held {
			b.t.Fatalf("request %d is lost but was in stage %d", f.ID, a.stage)
		}
		b.forget(a)
	case "ConfirmRelease":
		if a.stage != leaving {
			b.t.Fatalf("request %d is released but was in stage %d", f.ID, a.stage)
		}
		b.forget(a)
	}
}

func (b *model) forget(a *modelRequest) {
	delete(b.open, a.id)
	b.line = slices.DeleteFunc(b.line, func(o *modelRequest) bool { return o == a })
}

func (b *model) acquireNode(f machinetest.LocalEffect) {
	switch {
	case len(b.nodes) == 0:
		b.first, b.timeUsed, b.refused, b.granted = f.Serial, false, false, 0
	case len(b.nodes) > 1 || b.nodes[0].stage != held || f.Try || f.NodeKind == b.nodes[0].kind || !b.rule.EntersFrom(f.NodeKind).Has(b.nodes[0].kind):
		b.t.Fatalf("%d of kind %d is asked for beside %v", f.Serial, f.NodeKind, b.nodes)
	}
	b.nodes = append(b.nodes, &node{stage: creating, serial: f.Serial, kind: f.NodeKind, try: f.Try})
}

// grant checks that no holder blocks a grant and that it passes no earlier request.
func (b *model) grant(a *modelRequest, by *node, token [2]int64) {
	if by == nil || by.stage != held {
		b.t.Fatalf("request %d is granted what is not here", a.id)
	}
	if by.kind != a.kind && (by.kind == queue.Shared || b.rule.EntersFrom(a.kind).Has(by.kind)) {
		b.t.Fatalf("request %d is granted by a part of kind %d", a.id, by.kind)
	}
	entered := a.stage == creating // the owner held already, or has just got it
	for _, o := range b.open {
		switch {
		case !o.uses() || o == a:
		case o.owner == a.owner && a.owner != "":
			entered = true
			if o.token != token {
				b.t.Fatalf("request %d has token %v, its owner %v", a.id, token, o.token)
			}
		case b.rule.BlockedBy[a.kind].Has(o.kind):
			b.t.Fatalf("request %d is granted beside %d", a.id, o.id)
		}
	}
	if entered && a.stage == creating && a.token != token {
		b.t.Fatalf("request %d has token %v, its owner had %v", a.id, token, a.token)
	}
	if !entered {
		if b.line[0].places != a.places {
			b.t.Fatalf("request %d is granted, %d was first", a.id, b.line[0].id)
		}
		if slices.Compare(token[:], b.token[:]) <= 0 || token[0] != b.czxid {
			b.t.Fatalf("request %d has token %v after %v, the node hold's is %d", a.id, token, b.token, b.czxid)
		}
		b.token = token
		if b.granted++; b.contended() && (b.timeUsed || b.granted > b.grants) {
			b.t.Fatalf("request %d is grant %d of the node hold (over: %t) while others wait", a.id, b.granted, b.timeUsed)
		}
	}
	a.stage, a.token, a.by = held, token, by.serial
	b.line = slices.DeleteFunc(b.line, func(o *modelRequest) bool { return o == a })
}

// check runs after every event: no request waits that could hold, and nothing is kept that no owner
// may want.
func (b *model) check() {
	var holding [2]int
	for _, o := range b.open {
		if o.uses() {
			holding[o.kind]++
		}
	}
	unused := holding[queue.Exclusive]+holding[queue.Shared] == 0
	if len(b.nodes) == 0 || b.nodes[0].stage == creating {
		switch {
		case len(b.line) > 0 && len(b.nodes) == 0:
			b.t.Fatal("a request waits, and no node is acquired")
		case len(b.line) == 0 && len(b.nodes) > 0 || !unused:
			b.t.Fatal("no request waits, and a node is acquired; or a request holds without a node")
		}
		return
	}
	first, beside := b.nodes[0], &node{}
	if len(b.nodes) > 1 {
		beside = b.nodes[1]
	}
	switch {
	case len(b.line) > 0:
		b.checkFirst(b.line[0].kind, holding[queue.Exclusive] > 0, unused, first, beside)
	case unused && (b.contended() || !b.timerRuns):
		b.t.Fatal("the node hold is kept without a use")
	}
	if beside.stage == held && first.contended && !unused && holding[first.kind] == 0 && (len(b.line) == 0 || b.budgetUsed()) {
		b.t.Fatal("an unused node is kept")
	}
	for _, a := range b.line {
		if a.try && beside.stage != creating {
			b.t.Fatalf("%d is a try and waits", a.id)
		}
	}
}

// checkFirst checks the kind that is first in line.
func (b *model) checkFirst(kind queue.Kind, written, unused bool, first, beside *node) {
	covered := kind == first.kind || kind == queue.Shared
	apart := kind != first.kind && b.rule.EntersFrom(kind).Has(first.kind)
	free := !written && (unused || kind == queue.Shared) && covered && !b.budgetUsed()
	switch {
	case free && (!apart || beside.stage == held):
		b.t.Fatalf("%d waits and could hold", b.line[0].id)
	case free && beside.stage != creating && !b.refused:
		b.t.Fatalf("%d waits for a part that is not asked for", b.line[0].id)
	case unused && !(free && beside.stage == creating):
		b.t.Fatalf("%d waits while no request holds", b.line[0].id)
	}
}

func (b *model) pick(want progress) *modelRequest {
	var some []*modelRequest
	for _, a := range b.open {
		if a.stage == want {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		b.t.Skip("no such request")
	}
	slices.SortFunc(some, func(x, y *modelRequest) int { return int(x.id) - int(y.id) })
	return rapid.SampledFrom(some).Draw(b.t, "request")
}

// someNode returns a node in a stage.
func (b *model) someNode(want progress) *node {
	parts := slices.DeleteFunc(slices.Clone(b.nodes), func(p *node) bool { return p.stage != want })
	if len(parts) == 0 {
		b.t.Skip("not now")
	}
	return rapid.SampledFrom(parts).Draw(b.t, "part")
}

func (b *model) release(a *modelRequest) {
	a.stage = leaving
	b.step(func(l *Queue) { l.Release(a.id) })
}

func (b *model) nodeGranted(p *node) {
	p.stage = held
	if p.serial == b.first {
		b.czxid++
	}
	b.step(func(l *Queue) { l.NodeGranted(p.serial, machinetest.GenerationAt(b.czxid), b.czxid, uint32(b.czxid%3)) })
}

// acquire makes a request of an owner that may wait already, or hold.
func (b *model) acquire(t *rapid.T) {
	b.ids++
	a := &modelRequest{id: b.ids, places: b.ids, stage: queued,
		kind:  queue.Kind(rapid.IntRange(0, len(b.rule.Markers)-1).Draw(t, "kind")),
		owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
		try:   rapid.IntRange(0, 4).Draw(t, "try") == 0}
	for _, o := range b.open {
		switch {
		case a.owner == "" || o.owner != a.owner:
		case o.uses():
			a.stage, a.token = creating, o.token
		default:
			a.places = o.places
		}
	}
	b.open[a.id] = a
	if a.stage == queued {
		b.line = append(b.line, a)
		slices.SortStableFunc(b.line, func(x, y *modelRequest) int { return int(x.places) - int(y.places) })
	}
	b.step(func(l *Queue) { l.Acquire(requests.Incoming{ID: a.id, Owner: a.owner, Kind: a.kind, Try: a.try}) })
}

func (b *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": b.acquire,
		"cancel":  func(*rapid.T) { b.step(func(l *Queue) { l.Cancel(b.pick(queued).id, requests.Cancelled) }) },
		"give up a grant": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				a := b.pick(held)
				a.stage = leaving
				b.step(func(l *Queue) { l.Cancel(a.id, requests.Cancelled) })
			}
		},
		"cancel a downgrade": func(*rapid.T) { b.step(func(l *Queue) { l.Cancel(b.pick(creating).id, requests.Cancelled) }) },
		"release":            func(*rapid.T) { b.release(b.pick(held)) },
		"node granted":       func(*rapid.T) { b.nodeGranted(b.someNode(creating)) },
		"refused": func(t *rapid.T) {
			p, why := b.someNode(creating), rapid.SampledFrom([]requests.Reason{requests.NotAcquired, requests.SequenceExhausted}).Draw(t, "why")
			if why == requests.NotAcquired && !p.try {
				t.Skip("it was no try")
			}
			b.refused = p.serial != b.first
			b.nodes = slices.DeleteFunc(b.nodes, func(o *node) bool { return o == p })
			b.step(func(l *Queue) { l.NodeRefused(p.serial, why) })
		},
		"lost": func(*rapid.T) { b.step(func(l *Queue) { l.NodeLost(b.someNode(held).serial, requests.SessionLost) }) },
		"wanted": func(*rapid.T) {
			p := b.someNode(held)
			p.contended = true
			b.step(func(l *Queue) { l.NodeContended(p.serial) })
		},
		"overdue": func(*rapid.T) {
			b.someNode(held)
			b.timeUsed = true
			b.step(func(l *Queue) { l.TimeBudgetUsed(b.first) })
		},
		"answer about a former node hold": func(t *rapid.T) {
			serial := b.queue.lastSerial - uint64(rapid.IntRange(0, 3).Draw(t, "ago"))
			if b.nodeOf(serial) != nil || serial == b.first {
				t.Skip("it is not over")
			}
			b.step(rapid.SampledFrom([]queueCall{func(l *Queue) { l.NodeGranted(serial, 0, 0, 0) }, func(l *Queue) { l.NodeRefused(serial, requests.Cancelled) }, func(l *Queue) { l.NodeLost(serial, requests.SessionLost) }, func(l *Queue) { l.NodeContended(serial) }, func(l *Queue) { l.TimeBudgetUsed(serial) }}).Draw(t, "news"))
		},
		"lingered": func(t *rapid.T) {
			if !b.timerRuns {
				t.Skip("no timer")
			}
			b.timerRuns = false
			b.step((*Queue).IdleTimedOut)
		},
		"": func(*rapid.T) {},
	}
}

// finish has all owners leave: nothing may be left.
func (b *model) finish() {
	for range 1000 {
		for _, p := range b.nodes {
			if p.stage == creating {
				b.nodeGranted(p)
				break
			}
		}
		for _, a := range b.open {
			if a.stage == held {
				b.release(a)
				break
			}
		}
		if b.timerRuns {
			b.timerRuns = false
			b.step((*Queue).IdleTimedOut)
		}
	}
	l := b.queue
	if len(b.open)+len(b.nodes) > 0 || !l.Idle() || len(l.owners)+l.tries > 0 || !l.holders.empty() || !l.waiting.empty() ||
		l.holders.kinds.has(^queue.KindSet(0)) || l.waiting.kinds.has(^queue.KindSet(0)) {
		b.t.Fatalf("%d requests are open, parts %v; the local queue is left as %+v", len(b.open), b.nodes, l)
	}
}

func testLocalQueue(t *testing.T, rule queue.Rule) {
	rapid.Check(t, func(t *rapid.T) {
		grants := rapid.IntRange(1, 4).Draw(t, "grants")
		b := &model{t: t, rule: rule, grants: grants, queue: New(&machinetest.LocalRecorder{}, rule, uint32(grants)), open: map[requests.ID]*modelRequest{}}
		machinetest.Repeat(t, b.actions())
		b.finish()
	})
}

func TestHistoriesOfAMutex(t *testing.T) { testLocalQueue(t, queue.Mutex()) }

func TestHistoriesOfAReadWriteLock(t *testing.T) { testLocalQueue(t, queue.ReadWrite()) }

func TestHistoriesOfASimpleReadWriteLock(t *testing.T) {
	testLocalQueue(t, queue.SimpleReadWrite())
}

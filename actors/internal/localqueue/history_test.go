package localqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A bank is a Lender, those who ask it, and the lock that it borrows, which grants,
// refuses, is lost and is wanted as it likes.
type bank struct {
	t      *rapid.T
	lender *Queue
	rule   queue.Rule
	grants int
	ids    requests.ID
	open   map[requests.ID]*asked
	line   []*asked // waiting, in the order in which they came

	parts   []*node // of the loan that is asked for or here, the first first
	first   uint64  // its serial number
	refused bool    // what was asked for beside it
	over    bool
	lent    int // grants of the loan
	czxid   int64
	token   [2]int64 // of the last grant
	timing  bool
}

type asked struct {
	id     requests.ID
	kind   queue.Kind
	owner  string
	try    bool
	stage  stage // creating: it waits for a part beside what its owner holds
	by     uint64
	token  [2]int64
	places requests.ID // of the owner's first request, with which the others share it
}

// uses tells that somebody has a place among the holders.
func (a *asked) uses() bool { return a.stage == held || a.stage == creating }

// leaving is the stage of a request whose release is under way.
const leaving = lost + 1

func (b *bank) part(serial uint64) *node {
	for _, p := range b.parts {
		if p.serial == serial {
			return p
		}
	}
	return nil
}

func (b *bank) wanted() bool {
	return slices.ContainsFunc(b.parts, func(p *node) bool { return p.contended })
}

func (b *bank) spent() bool { return b.wanted() && (b.over || b.lent >= b.grants) }

func (b *bank) step(e Event) {
	for _, f := range slices.Clone(lend(b.lender, e)) {
		b.perform(f)
	}
	b.check()
}

func (b *bank) perform(f Effect) {
	a := b.open[f.ID]
	switch f.Kind {
	case AcquireNode:
		b.borrow(f)
	case ReleaseNode:
		p := b.part(f.Serial)
		if p == nil {
			b.t.Fatalf("loan %d is returned and not here", f.Serial)
		}
		b.parts = slices.DeleteFunc(b.parts, func(o *node) bool { return o == p })
		for _, a := range b.open {
			if a.stage == held && a.by == f.Serial {
				b.t.Fatalf("the loan is returned while %d holds by it", a.id)
			}
		}
	case StartIdleTimer:
		if b.timing {
			b.t.Fatal("a second timer")
		}
		b.timing = true
	case Grant:
		if f.Generation != machinetest.GenerationAt(f.Czxid) {
			b.t.Fatalf("request %d is granted with generation %d of czxid %d", f.ID, f.Generation, f.Czxid)
		}
		b.grant(a, b.part(f.Serial), [2]int64{f.Czxid, int64(f.Step)})
	case Refuse:
		if a == nil {
			b.t.Fatalf("request %d is refused but was not open", f.ID)
		}
		b.forget(a)
	case Lose:
		if a.stage != held {
			b.t.Fatalf("request %d is lost but was in stage %d", f.ID, a.stage)
		}
		a.stage = lost
		if a.owner == "" {
			b.forget(a)
		}
	case ConfirmRelease:
		if a.stage != leaving {
			b.t.Fatalf("request %d is released but was in stage %d", f.ID, a.stage)
		}
		b.forget(a)
	}
}

func (b *bank) forget(a *asked) {
	delete(b.open, a.id)
	b.line = slices.DeleteFunc(b.line, func(o *asked) bool { return o == a })
}

func (b *bank) borrow(f Effect) {
	switch {
	case len(b.parts) == 0:
		b.first, b.over, b.refused, b.lent = f.Serial, false, false, 0
	case len(b.parts) > 1 || b.parts[0].stage != held || f.Try || f.NodeKind == b.parts[0].kind || !b.rule.EntersFrom(f.NodeKind).Has(b.parts[0].kind):
		b.t.Fatalf("%d of kind %d is asked for beside %v", f.Serial, f.NodeKind, b.parts)
	}
	b.parts = append(b.parts, &node{stage: creating, serial: f.Serial, kind: f.NodeKind, try: f.Try})
}

// grant checks that nobody is in the way and nobody is passed over.
func (b *bank) grant(a *asked, by *node, token [2]int64) {
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
			b.t.Fatalf("request %d has token %v after %v, the loan's is %d", a.id, token, b.token, b.czxid)
		}
		b.token = token
		if b.lent++; b.wanted() && (b.over || b.lent > b.grants) {
			b.t.Fatalf("request %d is grant %d of the loan (over: %t) while others wait", a.id, b.lent, b.over)
		}
	}
	a.stage, a.token, a.by = held, token, by.serial
	b.line = slices.DeleteFunc(b.line, func(o *asked) bool { return o == a })
}

// check is for every moment: nobody waits who could hold, nothing is kept that nobody
// may want.
func (b *bank) check() {
	var holding [2]int
	for _, o := range b.open {
		if o.uses() {
			holding[o.kind]++
		}
	}
	unused := holding[queue.Exclusive]+holding[queue.Shared] == 0
	if len(b.parts) == 0 || b.parts[0].stage == creating {
		switch {
		case len(b.line) > 0 && len(b.parts) == 0:
			b.t.Fatal("somebody waits, and nothing is asked for")
		case len(b.line) == 0 && len(b.parts) > 0 || !unused:
			b.t.Fatal("nobody waits, and something is asked for; or somebody holds what is not here")
		}
		return
	}
	first, beside := b.parts[0], &node{}
	if len(b.parts) > 1 {
		beside = b.parts[1]
	}
	switch {
	case len(b.line) > 0:
		b.checkFirst(b.line[0].kind, holding[queue.Exclusive] > 0, unused, first, beside)
	case unused && (b.wanted() || !b.timing):
		b.t.Fatal("nobody uses the loan, and it is kept")
	}
	if beside.stage == held && first.contended && !unused && holding[first.kind] == 0 && (len(b.line) == 0 || b.spent()) {
		b.t.Fatal("a part is kept that nobody uses")
	}
	for _, a := range b.line {
		if a.try && beside.stage != creating {
			b.t.Fatalf("%d is a try and waits", a.id)
		}
	}
}

// checkFirst is about the kind that is first in line.
func (b *bank) checkFirst(kind queue.Kind, written, unused bool, first, beside *node) {
	covered := kind == first.kind || kind == queue.Shared
	apart := kind != first.kind && b.rule.EntersFrom(kind).Has(first.kind)
	free := !written && (unused || kind == queue.Shared) && covered && !b.spent()
	switch {
	case free && (!apart || beside.stage == held):
		b.t.Fatalf("%d waits and could hold", b.line[0].id)
	case free && beside.stage != creating && !b.refused:
		b.t.Fatalf("%d waits for a part that is not asked for", b.line[0].id)
	case unused && !(free && beside.stage == creating):
		b.t.Fatalf("%d waits while nobody holds", b.line[0].id)
	}
}

func (b *bank) pick(want stage) *asked {
	var some []*asked
	for _, a := range b.open {
		if a.stage == want {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		b.t.Skip("no such request")
	}
	slices.SortFunc(some, func(x, y *asked) int { return int(x.id) - int(y.id) })
	return rapid.SampledFrom(some).Draw(b.t, "request")
}

// some is a part in a stage.
func (b *bank) some(want stage) *node {
	parts := slices.DeleteFunc(slices.Clone(b.parts), func(p *node) bool { return p.stage != want })
	if len(parts) == 0 {
		b.t.Skip("not now")
	}
	return rapid.SampledFrom(parts).Draw(b.t, "part")
}

func (b *bank) release(a *asked) {
	if a.stage == held {
		a.stage = leaving
	}
	b.step(Release{a.id})
}

func (b *bank) borrowed(p *node) {
	p.stage = held
	if p.serial == b.first {
		b.czxid++
	}
	b.step(NodeGranted{Serial: p.serial, Generation: machinetest.GenerationAt(b.czxid), Czxid: b.czxid, Step: uint32(b.czxid % 3)})
}

// acquire has an owner ask that may wait already, or hold, or have lost.
func (b *bank) acquire(t *rapid.T) {
	b.ids++
	a := &asked{id: b.ids, places: b.ids, stage: queued,
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
		slices.SortStableFunc(b.line, func(x, y *asked) int { return int(x.places) - int(y.places) })
	}
	b.step(Acquire{ID: a.id, Owner: a.owner, Kind: a.kind, Try: a.try})
}

func (b *bank) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": b.acquire,
		"cancel":  func(*rapid.T) { b.step(Cancel{ID: b.pick(queued).id, Reason: requests.Cancelled}) },
		"give up a grant": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				a := b.pick(held)
				a.stage = leaving
				b.step(Cancel{ID: a.id, Reason: requests.Cancelled})
			}
		},
		"cancel a downgrade":      func(*rapid.T) { b.step(Cancel{ID: b.pick(creating).id, Reason: requests.Cancelled}) },
		"release":                 func(*rapid.T) { b.release(b.pick(held)) },
		"owner hears of the loss": func(*rapid.T) { b.release(b.pick(lost)) },
		"borrowed":                func(*rapid.T) { b.borrowed(b.some(creating)) },
		"refused": func(t *rapid.T) {
			p, why := b.some(creating), rapid.SampledFrom([]requests.Reason{requests.NotAcquired, requests.SequenceExhausted}).Draw(t, "why")
			if why == requests.NotAcquired && !p.try {
				t.Skip("it was no try")
			}
			b.refused = p.serial != b.first
			b.parts = slices.DeleteFunc(b.parts, func(o *node) bool { return o == p })
			b.step(NodeRefused{Serial: p.serial, Reason: why})
		},
		"lost": func(*rapid.T) { b.step(NodeLost{Serial: b.some(held).serial, Reason: requests.SessionLost}) },
		"wanted": func(*rapid.T) {
			p := b.some(held)
			p.contended = true
			b.step(NodeContended{Serial: p.serial})
		},
		"overdue": func(*rapid.T) {
			b.some(held)
			b.over = true
			b.step(TimeBudgetUsed{Serial: b.first})
		},
		"news of a former loan": func(t *rapid.T) {
			serial := b.lender.lastSerial - uint64(rapid.IntRange(0, 3).Draw(t, "ago"))
			if b.part(serial) != nil || serial == b.first {
				t.Skip("it is not over")
			}
			b.step(rapid.SampledFrom([]Event{NodeGranted{Serial: serial}, NodeRefused{serial, requests.Cancelled}, NodeLost{serial, requests.SessionLost}, NodeContended{serial}, TimeBudgetUsed{serial}}).Draw(t, "news"))
		},
		"lingered": func(t *rapid.T) {
			if !b.timing {
				t.Skip("no timer")
			}
			b.timing = false
			b.step(IdleTimedOut{})
		},
		"": func(*rapid.T) {},
	}
}

// finish makes everybody leave: nothing may be left.
func (b *bank) finish() {
	for range 1000 {
		for _, p := range b.parts {
			if p.stage == creating {
				b.borrowed(p)
				break
			}
		}
		for _, a := range b.open {
			if a.stage == held || a.stage == lost {
				b.release(a)
				break
			}
		}
		if b.timing {
			b.timing = false
			b.step(IdleTimedOut{})
		}
	}
	l := b.lender
	if len(b.open)+len(b.parts) > 0 || !l.Idle() || len(l.owners)+len(l.holders)+l.tries > 0 || l.waiting.first != nil || l.waiting.last != nil ||
		l.holding.has(^queue.KindSet(0)) || l.waiting.kinds.has(^queue.KindSet(0)) {
		b.t.Fatalf("%d requests are open, parts %v; the lender is left as %+v", len(b.open), b.parts, l)
	}
}

func testLending(t *testing.T, rule queue.Rule) {
	rapid.Check(t, func(t *rapid.T) {
		grants := rapid.IntRange(1, 4).Draw(t, "grants")
		b := &bank{t: t, rule: rule, grants: grants, lender: New(rule, uint32(grants)), open: map[requests.ID]*asked{}}
		machinetest.Repeat(t, b.actions())
		b.finish()
	})
}

func TestHistoriesOfALendingMutex(t *testing.T) { testLending(t, queue.Mutex()) }

func TestHistoriesOfALendingReadWriteLock(t *testing.T) { testLending(t, queue.ReadWrite()) }

func TestHistoriesOfALendingSimpleReadWriteLock(t *testing.T) {
	testLending(t, queue.SimpleReadWrite())
}

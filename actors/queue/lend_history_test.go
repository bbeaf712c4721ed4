package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A bank is a Lender, those who ask it, and the lock that it borrows, which grants,
// refuses, is lost and is wanted as it likes.
type bank struct {
	t      *rapid.T
	lender *Lender
	rule   Rule
	grants int
	ids    ID
	open   map[ID]*asked
	line   []*asked // waiting, in the order in which they came

	serial uint64 // of the loan that is asked for or here, or 0
	stage  stage
	kind   Kind
	try    bool
	wanted bool
	over   bool
	lent   int // grants of the loan that began while it was wanted
	before int // and those before
	czxid  int64
	token  [2]int64 // of the last grant
	timing bool
}

type asked struct {
	id    ID
	kind  Kind
	owner string
	try   bool
	stage stage
	token [2]int64
	place ID // of the owner's first request, with which the others share it
}

func (b *bank) step(e LendEvent) {
	for _, f := range slices.Clone(lend(b.lender, e)) {
		b.perform(f)
	}
	b.check()
}

func (b *bank) perform(f Effect) {
	a := b.open[f.ID]
	switch f.Do {
	case DoBorrow:
		if b.serial != 0 {
			b.t.Fatal("a second loan is asked for")
		}
		b.serial, b.stage, b.kind, b.try = f.Serial, creating, f.Kind, f.Try
		b.wanted, b.over, b.lent, b.before = false, false, 0, 0
	case DoReturn:
		if f.Serial != b.serial {
			b.t.Fatalf("loan %d is returned, have %d", f.Serial, b.serial)
		}
		b.serial = 0
		for _, a := range b.open {
			if a.stage == held {
				b.t.Fatalf("the loan is returned while %d holds", a.id)
			}
		}
	case DoLinger:
		if b.timing {
			b.t.Fatal("a second timer")
		}
		b.timing = true
	case DoGrant:
		b.grant(a, [2]int64{f.Czxid, int64(f.Step)})
	case DoRefuse:
		if a == nil {
			b.t.Fatalf("request %d is refused but was not open", f.ID)
		}
		b.forget(a)
	case DoLose:
		if a.stage != held {
			b.t.Fatalf("request %d is lost but was in stage %d", f.ID, a.stage)
		}
		a.stage = lost
		if a.owner == "" {
			b.forget(a)
		}
	case DoReleased:
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

// grant checks that nobody is in the way and nobody is passed over.
func (b *bank) grant(a *asked, token [2]int64) {
	if b.serial == 0 || b.stage != held {
		b.t.Fatalf("request %d is granted what is not here", a.id)
	}
	entered := false // the owner held already, or has just got it
	for _, o := range b.open {
		switch {
		case o.stage != held:
		case o.owner == a.owner && a.owner != "":
			entered = true
			if o.token != token {
				b.t.Fatalf("request %d has token %v, its owner %v", a.id, token, o.token)
			}
		case b.rule.BlockedBy[a.kind].Has(o.kind):
			b.t.Fatalf("request %d is granted beside %d", a.id, o.id)
		}
	}
	if a.kind == Exclusive && b.kind == Shared && !entered {
		b.t.Fatalf("request %d is granted by a reader's loan", a.id)
	}
	if !entered {
		if b.line[0].place != a.place {
			b.t.Fatalf("request %d is granted, %d was first", a.id, b.line[0].id)
		}
		if slices.Compare(token[:], b.token[:]) <= 0 || token[0] != b.czxid {
			b.t.Fatalf("request %d has token %v after %v, the loan's is %d", a.id, token, b.token, b.czxid)
		}
		if b.token = token; b.wanted {
			b.lent++
		} else {
			b.before++
		}
		if b.wanted && (b.over || b.lent > 0 && b.lent+b.before > b.grants) {
			b.t.Fatalf("request %d is grant %d of the loan (over: %t) while others wait", a.id, b.lent+b.before, b.over)
		}
	}
	a.stage, a.token = held, token
	b.line = slices.DeleteFunc(b.line, func(o *asked) bool { return o == a })
}

// check is for every moment: nobody waits who could hold, nothing is kept that nobody
// may want.
func (b *bank) check() {
	holding := 0
	free := true
	for _, o := range b.open {
		if o.stage == held {
			holding++
			free = free && (len(b.line) == 0 || !b.rule.BlockedBy[b.line[0].kind].Has(o.kind))
		}
	}
	spent := b.wanted && (b.over || b.lent+b.before >= b.grants)
	switch {
	case len(b.line) > 0 && b.serial == 0:
		b.t.Fatal("somebody waits, and nothing is asked for")
	case len(b.line) > 0 && b.stage == held && holding == 0:
		b.t.Fatalf("%d waits while nobody holds", b.line[0].id)
	case len(b.line) > 0 && b.stage == held && free && !spent && !(b.line[0].kind == Exclusive && b.kind == Shared):
		b.t.Fatalf("%d waits and could hold", b.line[0].id)
	case len(b.line) == 0 && holding == 0 && b.serial != 0 && (b.stage == creating || b.wanted || !b.timing):
		b.t.Fatal("nobody uses the loan, and it is kept")
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

func (b *bank) mustBe(want stage) {
	if b.serial == 0 || b.stage != want {
		b.t.Skip("not now")
	}
}

func (b *bank) release(a *asked) {
	if a.stage == held {
		a.stage = leaving
	}
	b.step(Release{a.id})
}

func (b *bank) borrowed() {
	b.stage = held
	b.czxid++
	b.step(Borrowed{Serial: b.serial, Czxid: b.czxid, Step: uint32(b.czxid % 3)})
}

func (b *bank) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			b.ids++
			a := &asked{id: b.ids, place: b.ids, stage: queued,
				kind:  Kind(rapid.IntRange(0, len(b.rule.Markers)-1).Draw(t, "kind")),
				owner: rapid.SampledFrom([]string{"", "", "", "a", "b"}).Draw(t, "owner"),
				try:   rapid.IntRange(0, 4).Draw(t, "try") == 0}
			for _, o := range b.open {
				if o.owner == a.owner && a.owner != "" {
					a.kind, a.place = o.kind, o.place
				}
			}
			b.open[a.id] = a
			b.line = append(b.line, a)
			slices.SortStableFunc(b.line, func(x, y *asked) int { return int(x.place) - int(y.place) })
			b.step(Acquire{ID: a.id, Owner: a.owner, Kind: a.kind, Try: a.try})
		},
		"cancel": func(*rapid.T) { b.step(Cancel{ID: b.pick(queued).id, Why: Cancelled}) },
		"give up a grant": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				a := b.pick(held)
				a.stage = leaving
				b.step(Cancel{ID: a.id, Why: Cancelled})
			}
		},
		"release":                 func(*rapid.T) { b.release(b.pick(held)) },
		"owner hears of the loss": func(*rapid.T) { b.release(b.pick(lost)) },
		"borrowed": func(*rapid.T) {
			b.mustBe(creating)
			b.borrowed()
		},
		"refused": func(t *rapid.T) {
			b.mustBe(creating)
			serial, why := b.serial, rapid.SampledFrom([]Why{NotAcquired, Exhausted}).Draw(t, "why")
			if why == NotAcquired && !b.try {
				t.Skip("it was no try")
			}
			b.serial = 0
			b.step(NotBorrowed{Serial: serial, Why: why})
		},
		"lost": func(*rapid.T) {
			b.mustBe(held)
			serial := b.serial
			b.serial = 0
			b.step(Forfeited{Serial: serial, Why: SessionLost})
		},
		"wanted": func(*rapid.T) {
			b.mustBe(held)
			b.wanted = true
			b.step(Wanted{Serial: b.serial})
		},
		"overdue": func(*rapid.T) {
			b.mustBe(held)
			b.over = true
			b.step(Overdue{Serial: b.serial})
		},
		"news of a former loan": func(t *rapid.T) {
			serial := b.serial - 1
			if b.serial == 0 {
				serial = b.lender.serials
			}
			b.step(rapid.SampledFrom([]LendEvent{Borrowed{Serial: serial}, NotBorrowed{serial, Cancelled}, Forfeited{serial, SessionLost}, Wanted{serial}, Overdue{serial}}).Draw(t, "news"))
		},
		"lingered": func(t *rapid.T) {
			if !b.timing {
				t.Skip("no timer")
			}
			b.timing = false
			b.step(Lingered{})
		},
		"": func(*rapid.T) {},
	}
}

// finish makes everybody leave: nothing may be left.
func (b *bank) finish() {
	for range 1000 {
		if b.serial != 0 && b.stage == creating {
			b.borrowed()
		}
		for _, a := range b.open {
			if a.stage == held || a.stage == lost {
				b.release(a)
				break
			}
		}
		if b.timing {
			b.timing = false
			b.step(Lingered{})
		}
	}
	if l := b.lender; len(b.open) > 0 || b.serial != 0 || !l.Idle() || len(l.owners)+len(l.holders) > 0 || l.waiting.first != nil || l.waiting.last != nil {
		b.t.Fatalf("%d requests are open, the loan is %d; left are %d requests, %d owners, %d holders, %v waiting, loan %v",
			len(b.open), b.serial, len(l.requests), len(l.owners), len(l.holders), l.waiting, l.loan)
	}
}

func testLending(t *testing.T, rule Rule) {
	rapid.Check(t, func(t *rapid.T) {
		grants := rapid.IntRange(1, 4).Draw(t, "grants")
		b := &bank{t: t, rule: rule, grants: grants, lender: NewLender(rule, uint32(grants)), open: map[ID]*asked{}}
		t.Repeat(b.actions())
		b.finish()
	})
}

func TestHistoriesOfALendingMutex(t *testing.T) { testLending(t, Mutex()) }

func TestHistoriesOfALendingReadWriteLock(t *testing.T) { testLending(t, ReadWrite()) }

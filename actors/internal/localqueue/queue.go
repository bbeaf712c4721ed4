package localqueue

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Lender lets the owners of one process use one contender in turn. It borrows the
// lock, as a contender that asks to be told when others wait, and lends it to those
// who ask, in their order. While nobody else waits it keeps the lock; when others do,
// it gives the lock up once it is not in use here, or, if it is in use all the time,
// once the budget is spent, and queues again behind them. Step is for a State what
// Lend is for a Lender. It is for one goroutine at a time.
//
// Borrowers have a kind, and the rule tells who may hold beside whom. Nobody passes by
// one who came earlier. See loan for what each of them holds by.
type Queue struct {
	rule   queue.Rule
	budget uint32
	closed requests.Reason

	hold       nodeHold
	lastSerial uint64 // the last serial number of a DoBorrow
	requests   requests.Table[localOwner]
	owners     map[string]*localOwner
	waiting    line
	holders    []*localOwner
	holding    census        // of the holders
	tries      int           // how many requests in line are tries
	spare      []*localOwner // for re-use

	timerRuns bool // a Lingered is to come
	unused    bool // and nobody has used the loan since it was asked for

	out []Effect
}

// NewLender is a Lender of nothing yet. grants is how many grants in a row it makes
// of one loan while others wait. Of the rule only the kinds count: who may hold
// beside whom, and who may enter again. Those who hold at a time must be of one kind.
func New(rule queue.Rule, grants uint32) *Queue {
	return &Queue{rule: rule, budget: min(grants, mostGrants), owners: map[string]*localOwner{},
		holding: newCensus(rule), waiting: line{kinds: newCensus(rule)}}
}

// loan is what the Lender has of the lock: a part, of the kind of who was first in line.
// If that is a writer's and readers are next, a reader's is asked for beside it, as for
// a downgrade: at once, and at the same place in the queue. From then on both kinds can
// be lent without asking. The former is given up for the latter when others wait for it
// and only readers hold: readers of other processes do not wait for those of this one,
// however long they read. (Where the rule knows no downgrade readers hold by the writer's
// part.) A reader's part alone does not do for a writer: it is given back, and the
// process queues for the writer's.
type nodeHold struct {
	node              // the first, or what is left
	beside     node   // unsent: none; lost: it was refused
	id         uint64 // the serial number of the first
	generation uint64
	czxid      int64
	step       uint32
	grants     uint32     // how often
	lastKind   queue.Kind // what it was lent for last
	timeUsed   bool       // its time
}

// part is one of the lock's nodes.
type node struct {
	stage     stage // unsent: none; creating: asked for; held
	serial    uint64
	kind      queue.Kind
	try       bool
	contended bool // others wait for it
}

// Each grant of a loan has a step of its own: that of the loan, then the number of
// the grant. (A transaction makes no more than some hundred nodes: that fits.) Once the
// numbers are used up those who hold beside each other share the last.
const (
	stepBits   = 20
	mostGrants = 1<<stepBits - 1
)

// Lend takes an event into the Lender and gives what is to be done about it, in order.
// The slice is good until the next Lend.
func Step[E Event](l *Queue, e E) []Effect {
	l.out = l.out[:0]
	e.apply(l)
	invariants.Check(l)
	return l.out
}

// Idle tells that nobody wants anything, and nothing is borrowed.
func (l *Queue) Idle() bool { return l.requests.Len() == 0 && l.hold.stage == unsent }

// Loans are the serial numbers of each DoBorrow that is asked for or granted.
func (l *Queue) NodeHolds() (serials []uint64) {
	for _, p := range []node{l.hold.beside, l.hold.node} {
		if p.stage == creating || p.stage == held {
			serials = append(serials, p.serial)
		}
	}
	return serials
}

func (l *Queue) effect(e Effect) { l.out = append(l.out, e) }

// ---- who asks

func (e Acquire) apply(l *Queue) {
	if l.closed != 0 {
		l.refuse(e.ID, l.closed)
		return
	}
	if e.Owner != "" {
		if b := l.owners[e.Owner]; b != nil {
			l.join(b, e)
			return
		}
	}
	if e.Try && l.blockedLocally(e.Kind) {
		l.refuse(e.ID, requests.NotAcquired)
		return
	}
	b := l.newOwner()
	b.stage, b.owner, b.kind, b.data = queued, e.Owner, e.Kind, e.Data
	if e.Owner != "" {
		l.owners[e.Owner] = b
	}
	l.add(b, request{id: e.ID, kind: e.Kind, try: e.Try, notifyContended: e.NotifyContended})
	l.waiting.push(b)
	l.proceed()
}

// join lets a further request of an owner share what it has.
func (l *Queue) join(b *localOwner, e Acquire) {
	r := request{id: e.ID, kind: e.Kind, notifyContended: e.NotifyContended}
	switch {
	case b.stage == lost:
		l.refuse(e.ID, b.reason)
	case b.stage != held && b.kind != e.Kind || !l.rule.EntersFrom(e.Kind).Has(b.kind):
		l.refuse(e.ID, requests.WouldDeadlock)
	case b.stage == held:
		if l.hold.beside.stage == lost {
			l.hold.beside = node{} // it may be had now
		}
		r.enters = !l.nodeReady(e.Kind, e.Data)
		l.add(b, r)
		if !r.enters {
			l.grantRequest(b, len(b.requests)-1)
		}
	case e.Try:
		l.refuse(e.ID, requests.NotAcquired)
	default:
		l.add(b, r)
	}
}

func (e Cancel) apply(l *Queue) {
	b := l.requests.At(e.ID)
	if b == nil {
		return
	}
	l.refuse(e.ID, e.Reason)
	l.drop(b, e.ID)
	l.proceed()
}

func (e Release) apply(l *Queue) {
	b := l.requests.At(e.ID)
	if b == nil || b.stage == queued || b.entering(e.ID) {
		l.refuse(e.ID, requests.NotHeld)
		return
	}
	stage, why, others := b.stage, b.reason, b.othersOfKind(e.ID)
	l.drop(b, e.ID)
	if stage == lost {
		l.refuse(e.ID, why)
		return
	}
	l.proceed() // first of all: the next one waits for it
	l.effect(Effect{Kind: ConfirmRelease, ID: e.ID, StillHeld: others})
}

func (e Close) apply(l *Queue) {
	l.closed = e.Reason
	l.refuseAll(e.Reason)
	l.lose(e.Reason)
	l.releaseNodes()
}

// ---- what is heard of the lock

// part is that of a serial number, or nil: news are about another loan.
func (l *Queue) nodeOf(serial uint64) *node {
	for _, p := range []*node{&l.hold.node, &l.hold.beside} {
		if (p.stage == creating || p.stage == held) && p.serial == serial {
			return p
		}
	}
	return nil
}

func (e NodeGranted) apply(l *Queue) {
	p := l.nodeOf(e.Serial)
	if p == nil {
		return
	}
	p.stage = held
	if p == &l.hold.node { // what is beside has the same token
		l.hold.generation, l.hold.czxid, l.hold.step = e.Generation, e.Czxid, e.Step
	}
	l.grantEntering()
	l.proceed()
}

func (e NodeRefused) apply(l *Queue) {
	p := l.nodeOf(e.Serial)
	switch {
	case p == nil:
		return
	case p == &l.hold.beside:
		p.stage = lost
		l.refuseEntering(e.Reason)
		l.proceed()
		return
	}
	l.hold = nodeHold{}
	if e.Reason == requests.NotAcquired {
		l.refuseTries()
	} else {
		l.refuseAll(e.Reason)
	}
	l.proceed()
}

func (e NodeLost) apply(l *Queue) {
	if l.nodeOf(e.Serial) != nil {
		l.lose(e.Reason)
		l.releaseNodes()
		l.proceed()
	}
}

func (e NodeContended) apply(l *Queue) {
	p := l.nodeOf(e.Serial)
	if p == nil {
		return
	}
	p.contended = true
	for _, b := range l.holders {
		for i := range b.requests {
			l.notifyContended(&b.requests[i])
		}
	}
	l.proceed()
}

func (e TimeBudgetUsed) apply(l *Queue) {
	if l.hold.id == e.Serial {
		l.hold.timeUsed = true
		l.proceed()
	}
}

func (IdleTimedOut) apply(l *Queue) {
	l.timerRuns = false
	switch {
	case !l.idle():
	case l.unused:
		l.releaseNodes()
	default:
		l.startTimer() // it was used meanwhile
	}
}

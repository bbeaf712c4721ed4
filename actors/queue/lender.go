package queue

// Lender lets the owners of one process use one contender in turn. It borrows the
// lock, as a contender that asks to be told when others wait, and lends it to those
// who ask, in their order. While nobody else waits it keeps the lock; when others do,
// it gives the lock up once it is not in use here, or, if it is in use all the time,
// once the budget is spent, and queues again behind them. Step is for a State what
// Lend is for a Lender. It is for one goroutine at a time.
type Lender struct {
	rule   Rule
	grants uint32
	closed Why

	loan     loan
	serials  uint64 // the last serial number of a DoBorrow
	requests map[ID]*borrower
	owners   map[string]*borrower
	waiting  line
	holders  []*borrower
	spare    []*borrower // for re-use

	timing bool // a Lingered is to come
	fresh  bool // and nobody has used the loan since it was asked for

	out []Effect
}

// NewLender is a Lender of nothing yet. grants is how many grants in a row it makes
// of one loan while others wait. Of the rule only the kinds count: who may hold
// beside whom.
func NewLender(rule Rule, grants uint32) *Lender {
	return &Lender{rule: rule, grants: min(grants, mostLent), requests: map[ID]*borrower{}, owners: map[string]*borrower{}}
}

// loan is what the Lender has of the lock.
type loan struct {
	stage  stage // unsent: none; creating: asked for; held
	serial uint64
	kind   Kind
	czxid  int64
	step   uint32
	lent   uint32 // how often
	wanted bool   // others wait for it
	over   bool   // its time
}

// Each grant of a loan has a step of its own: that of the loan, then the number of
// the grant. (A transaction makes no more than some hundred nodes: that fits.)
const (
	lentBits = 20
	mostLent = 1<<lentBits - 1
)

// LendEvent is something that happened to a Lender: Acquire, Cancel, Release, Close,
// or one of those in this file.
type LendEvent interface {
	lend(*Lender)
}

// Borrowed answers DoBorrow: the lock is held, with the token Czxid and Step.
type Borrowed struct {
	Serial uint64
	Czxid  int64
	Step   uint32
}

// NotBorrowed answers DoBorrow: it was refused.
type NotBorrowed struct {
	Serial uint64
	Why    Why
}

// Forfeited: the loan was lost.
type Forfeited struct {
	Serial uint64
	Why    Why
}

// Wanted: others wait for the loan.
type Wanted struct{ Serial uint64 }

// Overdue: the loan has been here for as long as it may be if others wait.
type Overdue struct{ Serial uint64 }

// Lingered answers DoLinger.
type Lingered struct{}

// Lend takes an event into the Lender and gives what is to be done about it, in order.
// The slice is good until the next Lend.
func Lend[E LendEvent](l *Lender, e E) []Effect {
	l.out = l.out[:0]
	e.lend(l)
	return l.out
}

// Idle tells that nobody wants anything, and nothing is borrowed.
func (l *Lender) Idle() bool { return len(l.requests) == 0 && l.loan.stage == unsent }

// Loan is the serial number of the DoBorrow that is asked for or granted, or 0.
func (l *Lender) Loan() uint64 { return l.loan.serial }

func (l *Lender) effect(e Effect) { l.out = append(l.out, e) }

// ---- who asks

func (e Acquire) lend(l *Lender) {
	if l.closed != 0 {
		l.refuse(e.ID, l.closed)
		return
	}
	if b := l.owners[e.Owner]; b != nil && e.Owner != "" {
		l.join(b, e)
		return
	}
	if e.Try && (l.waiting.first != nil || l.blocked(e.Kind)) {
		l.refuse(e.ID, NotAcquired)
		return
	}
	b := l.newBorrower()
	b.stage, b.owner, b.kind, b.data = queued, e.Owner, e.Kind, e.Data
	if e.Owner != "" {
		l.owners[e.Owner] = b
	}
	l.add(b, request{id: e.ID, try: e.Try, tell: e.Tell})
	l.waiting.push(b)
	l.proceed()
}

// join lets a further request of an owner share what it has.
func (l *Lender) join(b *borrower, e Acquire) {
	switch {
	case b.stage == lost:
		l.refuse(e.ID, b.why)
	case b.kind != e.Kind || !l.rule.Reenter[e.Kind].Has(e.Kind):
		l.refuse(e.ID, Deadlock)
	case b.stage == held:
		l.add(b, request{id: e.ID, tell: e.Tell})
		l.grantRequest(b, len(b.requests)-1)
	case e.Try:
		l.refuse(e.ID, NotAcquired)
	default:
		l.add(b, request{id: e.ID, tell: e.Tell})
	}
}

func (e Cancel) lend(l *Lender) {
	b := l.requests[e.ID]
	if b == nil {
		return
	}
	l.refuse(e.ID, e.Why)
	l.drop(b, e.ID)
	l.proceed()
}

func (e Release) lend(l *Lender) {
	b := l.requests[e.ID]
	if b == nil || b.stage == queued {
		l.refuse(e.ID, NotHeld)
		return
	}
	stage, why, others := b.stage, b.why, len(b.requests)-1
	l.drop(b, e.ID)
	if stage == lost {
		l.refuse(e.ID, why)
		return
	}
	l.proceed() // first of all: the next one waits for it
	l.effect(Effect{Do: DoReleased, ID: e.ID, StillHeld: others})
}

func (e Close) lend(l *Lender) {
	l.closed = e.Why
	l.refuseAll(e.Why)
	l.lose(e.Why)
	l.giveBack()
}

// ---- what is heard of the lock

// concerns tells whether news are about the present loan.
func (l *Lender) concerns(serial uint64) bool {
	return l.loan.stage != unsent && serial == l.loan.serial
}

func (e Borrowed) lend(l *Lender) {
	if l.concerns(e.Serial) {
		l.loan.stage, l.loan.czxid, l.loan.step = held, e.Czxid, e.Step
		l.proceed()
	}
}

func (e NotBorrowed) lend(l *Lender) {
	if !l.concerns(e.Serial) {
		return
	}
	l.loan = loan{}
	if e.Why == NotAcquired {
		l.refuseTries()
	} else {
		l.refuseAll(e.Why)
	}
	l.proceed()
}

func (e Forfeited) lend(l *Lender) {
	if l.concerns(e.Serial) {
		l.loan = loan{}
		l.lose(e.Why)
		l.proceed()
	}
}

func (e Wanted) lend(l *Lender) {
	if !l.concerns(e.Serial) {
		return
	}
	l.loan.wanted = true
	for _, b := range l.holders {
		for i := range b.requests {
			l.tell(&b.requests[i])
		}
	}
	l.proceed()
}

func (e Overdue) lend(l *Lender) {
	if l.concerns(e.Serial) {
		l.loan.over = true
	}
}

func (Lingered) lend(l *Lender) {
	l.timing = false
	switch {
	case !l.unused():
	case l.fresh:
		l.giveBack()
	default:
		l.linger() // it was used meanwhile
	}
}

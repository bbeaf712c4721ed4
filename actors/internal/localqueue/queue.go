package localqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Queue is the queue of the owners of one process for one lock. It is used by one goroutine at a
// time; the package's documentation says how it works.
type Queue struct {
	requests.EffectList
	rule   queue.Rule
	budget uint32

	hold       nodeHold
	lastNumber uint32 // of a request for a node
	requests   requests.Table[localOwner]
	owners     map[string]*localOwner
	waiting    ownerList
	holders    ownerList
	tries      int // how many requests of waiting owners are tries
	// spare has owners that are used again: that spares an acquire one allocation of six, and 5 % of its
	// CPU time.
	spare requests.Spare[localOwner]

	timerRuns bool // an IdleTimedOut is to come
	unused    bool // and no owner has been granted since the timer was started
}

// New returns a Queue without owners. budget is how many grants in a row it makes of one node hold
// while other processes wait. Of the rule only the kinds count: which block each other, and which
// may enter again. The holders of one moment are of one kind, except for an owner that holds two.
func New(rule queue.Rule, budget uint32) *Queue {
	l := &Queue{rule: rule, budget: min(budget, mostGrants), owners: map[string]*localOwner{}}
	l.waiting.kinds, l.holders.kinds = rule.NewCensus(), rule.NewCensus()
	return l
}

// nodeHold is what a Queue has of the lock: one node, or two. The first is of the kind of the owner
// that was first to wait. If that is a writer and readers come next, the Queue asks for a reader's
// node as the second one, as for a downgrade: at once, and at the same place in the lock's queue. From then
// on it grants both kinds without asking. It releases the writer's node when other processes wait
// for it and only readers hold: readers of other processes need not wait for those of this one,
// however long they read. (If the rule knows no downgrade, readers hold by the writer's node.) A
// reader's node alone does not suffice for a writer: the Queue releases it and queues for a
// writer's node.
type nodeHold struct {
	node                 // the first node, or the one that is left
	second   node        // unsent: there is none; refused: the lock below has refused it
	first    requests.ID // of the first node
	token    requests.Token
	grants   uint32     // how many grants were made of it, at most mostGrants
	lastKind queue.Kind // the kind of the last of them
	timeUsed bool       // the time budget is used
}

// node is one node of the lock.
type node struct {
	stage     progress    // unsent: there is none; creating: it is asked for; held
	id        requests.ID // of the request for it; no other node is at its place in a Table below
	kind      queue.Kind
	try       bool
	contended bool // contenders of other processes wait for it
	revoked   bool // another client asks for it
}

// StepBits is how many low bits of the step of a grant are not of the node's own step.
const StepBits = 20

// The step of a grant consists of the step of the node hold and the number of the grant. (A
// transaction makes no more than some hundred nodes, so both fit.) Once the numbers are used up,
// grants share the last number if they do not block each other.
const mostGrants = 1<<StepBits - 1

// Idle reports whether no request is open and no node is held or asked for.
func (l *Queue) Idle() bool { return l.requests.Len() == 0 && l.hold.stage == unsent }

// open reports whether the node is asked for or held.
func (p *node) open() bool { return p.stage == creating || p.stage == held }

// ---- calls of owners

// Acquire takes in a new request.
func (l *Queue) Acquire(e requests.Incoming) {
	if e.Owner != "" && l.owners[e.Owner] != nil {
		l.join(l.owners[e.Owner], e)
		return
	}
	if e.Try && l.blockedLocally(e.Kind) {
		l.Refuse(e.ID, requests.NotAcquired)
		return
	}
	b := l.newOwner()
	b.stage, b.owner, b.kind, b.data = queued, e.Owner, e.Kind, e.Data
	if e.Owner != "" {
		l.owners[e.Owner] = b
	}
	l.add(b, ownerRequest{id: e.ID, kind: e.Kind, try: e.Try, notifyContended: e.NotifyContended})
	l.waiting.push(b)
	l.proceed()
}

// join lets a further request of an owner share what the owner has.
func (l *Queue) join(b *localOwner, e requests.Incoming) {
	r := ownerRequest{id: e.ID, kind: e.Kind, notifyContended: e.NotifyContended}
	switch {
	case b.stage != held && b.kind != e.Kind || !l.rule.EntersFrom(e.Kind).Has(b.kind):
		l.Refuse(e.ID, requests.WouldDeadlock)
	case b.stage == held:
		if l.hold.second.stage == refused {
			l.hold.second = node{} // the lock below may grant it now
		}
		r.enters = !l.nodeReady(e.Kind, e.Data)
		l.add(b, r)
		if !r.enters {
			l.grantRequest(b, len(b.requests)-1)
		}
	case e.Try:
		l.Refuse(e.ID, requests.NotAcquired)
	default:
		l.add(b, r)
	}
}

// Cancel withdraws a request, because of why. It releases a grant, too.
func (l *Queue) Cancel(id requests.ID, why requests.Reason) {
	b := l.requests.At(id)
	if b == nil {
		return
	}
	l.Refuse(id, why)
	l.drop(b, id)
	l.proceed()
}

// Release releases a grant.
func (l *Queue) Release(id requests.ID) {
	b := l.requests.At(id)
	if b == nil || b.stage == queued || b.entering(id) {
		l.Refuse(id, requests.NotHeld)
		return
	}
	others := b.othersOfKind(id)
	l.drop(b, id)
	l.proceed() // first of all: the next owner waits for it
	l.Add(requests.ConfirmRelease, id).StillHeld = others
}

// ---- calls for the lock below

// nodeOf returns the node of a request below, or nil for news of an earlier node hold.
func (l *Queue) nodeOf(id requests.ID) *node {
	for _, p := range []*node{&l.hold.node, &l.hold.second} {
		if p.open() && p.id == id {
			return p
		}
	}
	return nil
}

// Answered takes in news of a node from the lock below.
func (l *Queue) Answered(news requests.Effect) {
	p := l.nodeOf(news.ID)
	if p == nil {
		return
	}
	switch news.Kind {
	case requests.Grant:
		l.nodeGranted(p, news)
	case requests.Refuse:
		l.nodeRefused(p, news.Reason)
	case requests.Lose:
		l.lose(news.Reason)
		l.releaseNodes()
	case requests.NotifyContended:
		p.contended = true
	case requests.RequestRevoke: // others are not granted by the node hold any more
		p.revoked = true
	}
	l.proceed() // which may release the node
	if news.Kind == requests.NotifyContended || news.Kind == requests.RequestRevoke {
		l.notifyHolders() // also of a revoke: the loss of a node would end all grants
	}
}

func (l *Queue) nodeGranted(p *node, news requests.Effect) {
	p.stage = held
	first := p == &l.hold.node // the second node has the same token
	if first {
		l.hold.token = news.Token
	}
	f := l.Add(requests.NoteNode, p.id)
	f.First, f.Node, f.Token = first, news.Node, news.Token
	l.grantEntering()
}

func (l *Queue) nodeRefused(p *node, why requests.Reason) {
	if p == &l.hold.second {
		p.stage = refused
		l.refuseEntering(why)
		return
	}
	l.hold = nodeHold{}
	if why == requests.NotAcquired {
		l.refuseTries()
	} else {
		l.refuseAll(why)
	}
}

// TimeBudgetUsed notes that the time is used up for which owners may pass a node on while other
// processes wait. first is the request for which the node was made.
func (l *Queue) TimeBudgetUsed(first requests.ID) {
	if l.hold.first == first {
		l.hold.timeUsed = true
		l.proceed()
	}
}

// IdleTimedOut answers StartIdleTimer.
func (l *Queue) IdleTimedOut() {
	l.timerRuns = false
	switch {
	case !l.idle():
	case l.unused:
		l.releaseNodes()
	default:
		l.startTimer() // an owner was granted meanwhile
	}
}

// ReleaseMemory frees what is not in use.
func (l *Queue) ReleaseMemory() {
	l.EffectList, l.requests, l.spare = requests.EffectList{}, requests.Table[localOwner]{}, requests.Spare[localOwner]{}
}

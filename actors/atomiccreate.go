package actors

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// atomicCreate is what the members of a multi-lock have in common in one phase of a request. The
// actor of each member reports once, in its own time: it hands in the node that it wants
// (add), or says that it wants none (skip). The last report decides: one transaction makes
// all nodes, or, if the owner has some of the members but not all, the request is refused.
type atomicCreate struct {
	bridge          *zkbridge.Bridge
	number          uint64 // of all groups of this program; see lockqueue.Acquire.AtomicCreate
	multi           ask.Recipient
	attempt         uint64 // of multi
	owner           string
	members         int
	queueingAttempt *queueingAttempt

	mu         sync.Mutex
	unreported int // members that have not reported
	creates    []zkbridge.Part
	done       bool

	membersKnown  int    // members that the owner waits for or holds already
	firstKnown    string // the path of the first of them
	enteredCreate uint64 // the group that made the nodes of all of them; 0 if there is no such group
}

// queueingAttempt is an attempt that queues at the gates of its semaphores, and has nothing of its
// other members yet. If its owner asks for one of these meanwhile, the attempt is refused at
// once: it would be, for having a part only, when it is past the gates.
type queueingAttempt struct {
	multi   ask.Recipient
	attempt uint64
	over    atomic.Bool
}

// lastAtomicCreate is the number of the group that was made last.
var lastAtomicCreate atomic.Uint64

// acquireMember is an Acquire for the member of a multi-lock, whose node is made together
// with those of others.
type acquireMember struct {
	*messages.Acquire
	atomicCreate *atomicCreate
	// checkOnly asks only whether the owner has something of the lock: the multi-lock queues at
	// the gates of its semaphores first, and must not do so for what it cannot get.
	checkOnly bool
}

// proceedMessage tells a semaphore that the multi-lock is past all gates.
type proceedMessage struct {
	requestID    uint64
	atomicCreate *atomicCreate
}

// queuePassed tells a multi-lock that a request is past the gate of a semaphore.
type queuePassed struct{ requestID uint64 }

// attemptRefused tells a multi-lock that an attempt has failed for good.
type attemptRefused struct {
	attempt uint64
	why     messages.Reason
	detail  string
}

func newAtomicCreate(m *multiLock, a *attempt) *atomicCreate {
	n := len(m.deps)
	return &atomicCreate{bridge: m.manager.zk.Bridge, number: lastAtomicCreate.Add(1), multi: m.self, attempt: a.id,
		owner: a.msg.Owner, members: n, unreported: n, queueingAttempt: a.queueingAttempt}
}

// add hands in a member's node.
func (g *atomicCreate) add(p zkbridge.Part) {
	g.mu.Lock()
	over := g.done
	if !over {
		g.creates = append(g.creates, p)
	}
	g.mu.Unlock()
	if over {
		refuseCreates([]zkbridge.Part{p})
		return
	}
	g.reportNone()
}

// reportNone reports that a member needs no node in this phase.
func (g *atomicCreate) reportNone() {
	g.mu.Lock()
	g.unreported--
	last, whole := g.unreported == 0 && !g.done, g.tokensEqual()
	g.done = g.done || last && whole
	g.mu.Unlock()
	switch {
	case last && !whole:
		g.refuse(messages.Reason_WOULD_DEADLOCK, g.deadlockDetail(g.firstKnown))
	case last && len(g.creates) > 0:
		g.bridge.CreateAll(g.creates)
	}
}

// deadlockDetail says why the owner cannot have the multi-lock as long as it has the lock at path.
func (g *atomicCreate) deadlockDetail(path string) string {
	return fmt.Sprintf("owner %q waits for %s or holds it by another request: release or cancel that first; "+
		"a multi-lock is entered again only by those members that one request for a multi-lock has taken", g.owner, path)
}

// reportKnown notes that the owner waits for a member or holds it already, before the member
// reports. made is the group that made the node there that the request enters, or 0.
func (g *atomicCreate) reportKnown(path string, made uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.membersKnown == 0:
		g.firstKnown, g.enteredCreate = path, made
	case g.enteredCreate != made:
		g.enteredCreate = 0
	}
	g.membersKnown++
}

// tokensEqual reports whether the tokens of all parts will be equal: the owner has none of the
// members, or enters all of them by the nodes of one transaction. The parts of semaphores
// are new in any case.
func (g *atomicCreate) tokensEqual() bool {
	switch g.membersKnown {
	case 0:
		return true
	case g.members:
		return len(g.creates) == g.members || len(g.creates) == 0 && (g.enteredCreate != 0 || g.members == 1)
	}
	return false
}

// refuse ends the attempt for good, unless the group is over. The multi-lock hears of it
// before any member does.
func (g *atomicCreate) refuse(why messages.Reason, detail string) {
	refuseCreates(g.end(func() { g.multi.Tell(attemptRefused{g.attempt, why, detail}) }))
}

// abort ends a group that is not over.
func (g *atomicCreate) abort() { refuseCreates(g.end(func() {})) }

// end ends the group and calls first, unless the group is over. It returns the nodes that
// are not to be made then.
func (g *atomicCreate) end(first func()) (parts []zkbridge.Part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return nil
	}
	g.done = true
	first()
	return g.creates
}

// refuseCreates tells members that their nodes will not be made. It is no loss for the attempt
// that has ended. One of another multi-lock of the same owner, which waits for the same
// nodes, begins anew.
func refuseCreates(parts []zkbridge.Part) {
	for _, p := range parts {
		p.From.Tell(&messages.Failed{Id: p.Create.Id, Epoch: p.Create.Epoch, Reason: messages.Reason_NODE_DELETED})
	}
}

// ---- what a member has of the owner

// checkReentry checks a request for the member of a multi-lock against what its owner has of this
// lock already. It reports whether the request may go on, and whether it needs a node.
func (l *lock) checkReentry(msg acquireMember) (may, needs bool) {
	if why, lost := l.state.LostBy(msg.Owner); l.anyFromUsers(lost) {
		msg.atomicCreate.refuse(messages.Reason(why), fmt.Sprintf("owner %q has lost %s and not released it", msg.Owner, l.path))
		return false, false
	}
	switch entry := l.state.Entry(msg.Owner, queue.Kind(msg.Kind)); {
	case !entry.Known:
		return true, true
	case entry.AtomicCreate == 0 && msg.atomicCreate.members > 1:
		msg.atomicCreate.refuse(messages.Reason_WOULD_DEADLOCK, msg.atomicCreate.deadlockDetail(l.path))
		return false, false
	default:
		msg.atomicCreate.reportKnown(l.path, entry.AtomicCreate)
		return true, false
	}
}

// anyFromUsers reports whether some of the requests are not those of another actor of this
// package, which gives up at once what it has lost.
func (l *lock) anyFromUsers(ids []requests.ID) bool {
	return slices.ContainsFunc(ids, func(id requests.ID) bool {
		r := l.requests.At(id)
		return r != nil && !r.fromLockActor
	})
}

// expectAttempt notes that an attempt of the owner asks for this lock later.
func (l *lock) expectAttempt(owner string, q *queueingAttempt) {
	if owner == "" {
		return
	}
	if l.expected == nil {
		l.expected = map[string][]*queueingAttempt{}
	}
	l.expected[owner] = append(l.expected[owner], q)
}

// refuseExpected refuses the attempts, other than mine, that expect to find nothing of the owner here,
// if the owner waits for this lock or holds it now.
func (l *lock) refuseExpected(owner string, kind queue.Kind, mine *queueingAttempt) {
	all := l.expected[owner]
	if len(all) == 0 || !l.state.Entry(owner, kind).Known {
		return
	}
	for _, q := range all {
		if q != mine {
			q.multi.Tell(attemptRefused{q.attempt, messages.Reason_WOULD_DEADLOCK, fmt.Sprintf("owner %q has asked for %s by another request "+
				"while this one waited at the gate of a semaphore", owner, l.path)})
		}
	}
	l.expected[owner] = slices.DeleteFunc(all, func(q *queueingAttempt) bool { return q != mine })
}

// forgetAttempts forgets attempts that are over, and done.
func (l *lock) forgetAttempts(done *queueingAttempt) {
	for owner, all := range l.expected {
		if all = slices.DeleteFunc(all, func(q *queueingAttempt) bool { return q == done || q.over.Load() }); len(all) > 0 {
			l.expected[owner] = all
		} else {
			delete(l.expected, owner)
		}
	}
}

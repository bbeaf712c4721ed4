package recipes

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// atomicCreate is what the members of a multi-lock have in common in one phase of an attempt.
// The actor of each member reports once, in its own time: it hands in the node that it wants
// (add), or reports that it wants none (reportNone). The last report decides: one transaction
// creates all nodes; or, if the owner has some of the members but not all, the attempt is
// refused.
type atomicCreate struct {
	bridge   *zkbridge.Bridge
	number   uint64 // of all atomic creates of this process; see lockqueue.Acquire
	owner    string
	members  int
	queueing *queueingAttempt

	mu         sync.Mutex
	unreported int // members that have not reported
	creates    []zkbridge.CreateSpec
	done       bool // the transaction is sent, or the attempt has ended

	known         int    // members that the owner waits for or holds already
	firstKnown    string // the path of the first of them
	enteredCreate uint64 // the atomic create whose nodes the attempt enters in all known members; 0 if they are not those of one
}

// queueingAttempt is an attempt that waits in the request queues of its semaphores, and has
// nothing of its other members yet. It is refused at once if its owner asks for one of these
// meanwhile: otherwise it would be refused after the wait, as its owner has some of the members.
type queueingAttempt struct {
	multiLock ask.Recipient
	attempt   uint64
	over      atomic.Bool
}

func (q *queueingAttempt) refuse(reason messages.Reason, detail string) {
	q.multiLock.Tell(attemptRefused{q.attempt, reason, detail})
}

// lastAtomicCreate is the number of the latest atomicCreate.
var lastAtomicCreate atomic.Uint64

// acquireMember is an Acquire for a member of a multi-lock.
type acquireMember struct {
	*messages.Acquire
	create *atomicCreate
	// queueing is the first phase of an attempt with semaphores: a semaphore takes its place in its request
	// queue, and any other member only checks whether the owner has something of the lock. The multi-lock
	// must not wait in the request queues for a lock that it cannot get.
	queueing bool
}

// Acquires implements shell.Envelope.
func (m acquireMember) Acquires() []*messages.Acquire { return []*messages.Acquire{m.Acquire} }

// queuePassed tells a multi-lock that a request has passed the request queue of a semaphore.
type queuePassed struct{ requestID uint64 }

// attemptRefused tells a multi-lock that an attempt has failed for good.
type attemptRefused struct {
	attempt uint64
	reason  messages.Reason
	detail  string
}

func newAtomicCreate(m *multiLockActor, a *attempt) *atomicCreate {
	n := len(m.Deps)
	return &atomicCreate{bridge: m.Manager.Bridge.Bridge, number: lastAtomicCreate.Add(1),
		owner: a.msg.Owner, members: n, unreported: n, queueing: a.queueing}
}

// add hands in a member's node.
func (c *atomicCreate) add(p zkbridge.CreateSpec) {
	c.mu.Lock()
	done := c.done
	if !done {
		c.creates = append(c.creates, p)
	}
	c.mu.Unlock()
	if done {
		refuseCreates([]zkbridge.CreateSpec{p})
		return
	}
	c.reportNone()
}

// reportNone reports that a member wants no node in this phase, or no further one.
func (c *atomicCreate) reportNone() {
	c.mu.Lock()
	c.unreported--
	last, equal := c.unreported == 0 && !c.done, c.tokensEqual()
	c.done = c.done || last && equal
	c.mu.Unlock()
	switch {
	case last && !equal:
		c.refuse(messages.Reason_WOULD_DEADLOCK, c.deadlockDetail(c.firstKnown))
	case last && len(c.creates) > 0:
		c.bridge.CreateAtomically(c.creates)
	}
}

// deadlockDetail says why the owner cannot have the multi-lock as long as it has the lock at
// path.
func (c *atomicCreate) deadlockDetail(path string) string {
	return fmt.Sprintf("owner %q waits for %s or holds it by another request: release or cancel that first; "+
		"a multi-lock is entered again only by those members that one request for a multi-lock has taken", c.owner, path)
}

// reportKnown reports, before the member itself reports, that the owner waits for a member or
// holds it already. entered is the atomic create of the node there that the attempt enters, or
// 0.
func (c *atomicCreate) reportKnown(path string, entered uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known == 0:
		c.firstKnown, c.enteredCreate = path, entered
	case c.enteredCreate != entered:
		c.enteredCreate = 0
	}
	c.known++
}

// tokensEqual reports whether the tokens of all members will be equal: the owner has none of the
// members, or enters all of them by the nodes of one transaction. The leases of semaphores are
// new in any case.
func (c *atomicCreate) tokensEqual() bool {
	switch c.known {
	case 0:
		return true
	case c.members:
		return len(c.creates) == c.members || len(c.creates) == 0 && (c.enteredCreate != 0 || c.members == 1)
	}
	return false
}

// refuse ends the attempt for good if the atomic create is not done. The multi-lock hears of it
// before any member does.
func (c *atomicCreate) refuse(reason messages.Reason, detail string) {
	refuseCreates(c.end(func() { c.queueing.refuse(reason, detail) }))
}

// abort ends an atomic create that is not done.
func (c *atomicCreate) abort() { refuseCreates(c.end(func() {})) }

// end calls first and ends an atomic create that is not done. It returns the nodes that are not
// to be created then.
func (c *atomicCreate) end(first func()) (creates []zkbridge.CreateSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return nil
	}
	c.done = true
	first()
	return c.creates
}

// refuseCreates tells members that their nodes will not be created. For an attempt that has
// ended this is no loss. An attempt of another multi-lock with the same owner that waits for the
// same nodes begins anew.
func refuseCreates(creates []zkbridge.CreateSpec) {
	for _, p := range creates {
		p.From.Tell(&messages.Failed{Id: p.Create.Id, Epoch: p.Create.Epoch, Reason: messages.Reason_NODE_DELETED})
	}
}

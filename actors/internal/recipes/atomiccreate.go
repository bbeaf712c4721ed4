package recipes

import (
	"sync"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// atomicCreate is what the members of a multi-lock have in common in one phase of an attempt. The
// actor of each member reports once, in its own time: it hands in the node that it wants (add), or
// reports that it wants none (reportNone). After the last report one transaction creates all nodes.
// A member that refuses its request reports nothing: the multi-lock then aborts the create.
type atomicCreate struct {
	bridge    zkbridge.Internals
	multiLock ask.Recipient
	attempt   uint64

	mu         sync.Mutex
	unreported int // members that have not reported
	creates    []*zkbridge.Create
	done       bool // the transaction is sent, or the attempt has ended
}

// acquireMember is an Acquire for a member of a multi-lock.
type acquireMember struct {
	*messages.Acquire
	create *atomicCreate
	// queueing is the first phase of an attempt with semaphores: a semaphore takes its place in its
	// request queue, and any other member only checks whether the owner has something of the lock.
	// The multi-lock must not wait in the request queues for a lock that it cannot get.
	queueing bool
}

// queuePassed tells a multi-lock that a request has passed the request queue of a semaphore.
type queuePassed struct{ requestID uint64 }

// ownerLost tells a multi-lock that the owner of an attempt has lost a member before, and not
// released it. The attempt ends, while after a loss of its own it would begin anew.
type ownerLost struct {
	attempt uint64
	reason  messages.Reason
	detail  string
}

func newAtomicCreate(m *multiLockActor, a *attempt) *atomicCreate {
	return &atomicCreate{bridge: m.Manager.Bridge, multiLock: m.Self, attempt: a.id, unreported: len(m.Deps)}
}

// add hands in a member's node.
func (c *atomicCreate) add(p *zkbridge.Create) {
	c.mu.Lock()
	done := c.done
	if !done {
		c.creates = append(c.creates, p)
	}
	c.mu.Unlock()
	if done {
		refuseCreates(p)
		return
	}
	c.reportNone()
}

// reportNone reports that a member wants no node in this phase, or no further one.
func (c *atomicCreate) reportNone() {
	c.mu.Lock()
	c.unreported--
	last := c.unreported == 0 && !c.done
	c.done = c.done || last
	c.mu.Unlock()
	if last && len(c.creates) > 0 {
		c.bridge.CreateAtomically(c.creates)
	}
}

// nodes returns the names of the nodes, without their sequence numbers.
func (c *atomicCreate) nodes() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.creates {
		names = append(names, p.Message().Prefix)
	}
	return names
}

// abort ends an atomic create that is not done.
func (c *atomicCreate) abort() {
	c.mu.Lock()
	creates, done := c.creates, c.done
	c.done = true
	c.mu.Unlock()
	if !done {
		refuseCreates(creates...)
	}
}

// refuseCreates tells members that their nodes will not be created. The attempt that wanted them
// has ended.
func refuseCreates(creates ...*zkbridge.Create) {
	for _, p := range creates {
		p.Fail(messages.Reason_NODE_DELETED, "")
	}
}

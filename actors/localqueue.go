package actors

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/gen/host"
)

// LocalQueueConfig says how the owners of one process share a node; see LocalQueue. Its zero
// value works.
type LocalQueueConfig struct {
	// Grants is how many grants in a row the process makes by one node while other
	// processes wait. 0 means 1000.
	Grants int
	// Time is how long the process goes on making grants by one node while others
	// wait, counted from when it got the node. 0 means 100 ms. A single grant lasts
	// as long as its holder likes.
	Time time.Duration
	// Linger is how long the process keeps a node that nobody wants, here or
	// elsewhere; it may be up to twice as long. 0 means 1 s.
	Linger time.Duration
}

const (
	defaultGrants = 1000
	defaultTime   = 100 * time.Millisecond
	defaultLinger = time.Second
)

// LocalQueue has all owners of this process share one node in the lock's queue, which
// they pass on between them in the order in which they asked. Acquiring then mostly
// needs no ZooKeeper at all. The price is that the lock is fair within the process, and
// fair between processes, but not across: owners of this process may pass by others who
// came earlier, as far as LocalQueueConfig allows. Once its Grants or its Time are used up and
// another contender waits, the process queues again, at the end. A node that is not in
// use is given up as soon as another contender appears, or after Linger.
//
// The readers of a RWMutex share a read node, and its writers pass on a write node. Both
// kinds wait in one order, that of arrival, and Grants and Time are for both together. A
// process that has the write node and comes to a reader makes its read node beside it, at
// the same place in the queue, as who goes from writing to reading does. That takes one
// round trip; then both nodes are kept, and the process changes between reading and
// writing without ZooKeeper. (To let readers hold by the write node would be simpler, but
// would keep readers of other processes out for as long as the longest of them reads; to
// queue for a read node would make the process wait at each change.) The write node is
// given up when others wait and only readers are left: at once if no writer waits here,
// else when Grants or Time are used up. To get from the read node to the write node the
// process queues, once its readers are done.
//
// What is different for a grant:
//   - Its node may have been there before it and may be there after it. So Verify,
//     Guard and VerifyToken tell whether this process has the lock, not which of its
//     owners. The token is the grant's own, and grows with each: the resource's check
//     of tokens works as ever. (Readers who hold beside each other may come to share
//     one, after a million grants by one node.)
//   - If one of the process's two nodes is lost, so are the grants by the other.
//   - The node has the data of whoever had it made, as WithData gives it.
//   - A release is complete when the next owner of this process may hold the lock; it
//     does not wait for ZooKeeper.
//   - A request to read that is a Try is refused also while the process waits for its
//     read node on behalf of others who would rather wait.
//
// A Mutex and a RWMutex can have a local queue.
func LocalQueue(local LocalQueueConfig) LockOption {
	return func(r *recipe) error {
		switch {
		case local.Grants < 0:
			return invalid(fmt.Sprintf("LocalQueueConfig.Grants %d: it must be positive, or 0 for %d", local.Grants, defaultGrants))
		case local.Time < 0:
			return invalid(fmt.Sprintf("LocalQueueConfig.Time %v: it must be positive, or 0 for %v", local.Time, defaultTime))
		case local.Linger < 0:
			return invalid(fmt.Sprintf("LocalQueueConfig.Linger %v: it must be positive, or 0 for %v", local.Linger, defaultLinger))
		case r.deps != nil || r.rule.Permits != 1:
			return invalid(fmt.Sprintf("LocalQueue for a %s: only a mutex or a read-write lock is accepted", r.name))
		}
		r.local = &LocalQueueConfig{Grants: orDefault(local.Grants, defaultGrants), Time: orDefault(local.Time, defaultTime), Linger: orDefault(local.Linger, defaultLinger)}
		return nil
	}
}

func orDefault[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}

// withLocalQueue is the recipe whose lock is lent to the owners of this process, by an actor
// of its own.
func (r *recipe) withLocalQueue() *recipe {
	local, below := *r.local, *r
	below.local = nil
	front := below
	front.local = r.local
	front.name = fmt.Sprintf("%s with a local queue (%d grants, %v, lingering %v)", r.name, local.Grants, local.Time, local.Linger)
	front.deps = []dependency{{recipe: &below}}
	front.newActor = func(res *actorEntry) host.Actor { return newLocalQueue(res, local) }
	return &front
}

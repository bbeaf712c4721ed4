package actors

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
)

// LocalQueueConfig bounds how long the owners of one process share a node; see LocalQueue. Its
// zero value works. A lock server accepts times of a minute at most.
type LocalQueueConfig struct {
	// Grants bounds the grants that the process makes in a row by one node while other processes
	// wait. 0 means 1000.
	Grants int
	// Time bounds how long the process makes grants by one node while other processes wait, counted
	// from when it got the node. 0 means 100 ms. A single grant lasts as long as its holder likes.
	Time time.Duration
	// Linger is how long the process keeps a node that no contender wants, here or elsewhere; it
	// may be up to twice as long. 0 means 1 s.
	Linger time.Duration
}

// LocalQueue has all owners of this process share one node in the lock's queue, which they pass on
// between them in the order of their requests. Acquiring then mostly needs no ZooKeeper at all. The
// price is fairness: the lock is fair within the process, and fair between processes, but not
// across. Owners of this process may pass contenders that came earlier, within the bounds of
// LocalQueueConfig. When Grants or Time are used up and another contender waits, the process queues
// again, at the end. A node that is not in use is released as soon as another contender appears, or
// after Linger. A client that asks for the lock (see Locks.Revoke) ends Grants and Time, whether or
// not it waits: the process releases the node after its present holders, which all hear of it.
//
// The readers of a RWMutex share a read node, and its writers pass on a write node. Both kinds
// wait in one order, the order of arrival, and Grants and Time count for both together. A process
// that has the write node and comes to a reader makes its read node beside it, at the same place
// in the queue, as a downgrade does. That takes one round trip; then the process keeps both
// nodes, and changes between reading and writing without ZooKeeper. (Readers that hold by the
// write node would be simpler, but would keep readers of other processes out for as long as the
// longest of them reads; queueing for a read node would make the process wait at each change.)
// The process releases the write node when others wait and it has only readers left: at once if
// no writer waits here, else when Grants or Time are used up. To get from the read node to the
// write node the process queues, once its readers are done.
//
// A grant differs from one without a local queue:
//   - Its node may exist before it and after it. So Verify, Guard and VerifyToken show whether
//     this process has the lock, not which of its owners. The token is the grant's own, and grows
//     with each: the resource's check of tokens works as ever. (Readers that hold beside each
//     other may come to share a token, after a million grants by one node.)
//   - If one of the process's two nodes is lost, so are the grants by the other.
//   - The node has the data, as set by WithData, of the request for which it was made.
//   - A release is complete when the next owner of this process may hold the lock; it does not
//     wait for ZooKeeper.
//   - A request to read that is a Try is also refused while the process waits for its read node
//     for requests that are no Try.
//
// A Mutex and a RWMutex can have a local queue.
func LocalQueue(c LocalQueueConfig) LockOption {
	return lockOption(recipes.LocalQueue(manager.LocalQueueConfig(c)))
}

// Package actors is the public face of actorlock: distributed locks on Apache
// ZooKeeper, fair, re-entrant by owner, with fencing tokens.
//
// Connect gives Locks, Locks gives a handle for a path: a Mutex, a RWMutex, a Semaphore
// and others. Acquire returns a Future to select on, Lock blocks; both end in a Grant, the
// proof of holding, which knows its fencing Token and tells when it is lost. Actors of a
// protoactor system can send the messages of lock.proto to a lock's PID instead.
//
// Behind a handle stands one actor per path and process, which the handle's recipe makes
// and the manager keeps. It feeds what happens to a pure state of package queue and
// performs what that asks for. There are these, and each deals with owners at a desk:
//
//   - lock (lock.go, lockqueue.State): the queue of one directory, for mutexes, read-write
//     locks and rules of users. It asks the bridge, which owns the ZooKeeper connection.
//   - pool (pool.go, semaphore.State): a semaphore, which asks two locks.
//   - multi (multi.go): a multi-lock, which asks its members.
//   - lender (lender.go, localqueue.Queue): it lends one lock to all owners of the process,
//     be it to read or to write.
//   - simple (simple.go, simplelock.Contender): the simple forms, below a lender.
//
// A request of Go code is a claim (claim.go): to the actor it is an owner like any other.
//
// # Why tokens increase
//
// Two grants conflict if they cannot be held at one time: by the rule of the recipe, or, of
// a semaphore, because their permits are more than it has. Of two conflicting grants of one
// path, by whichever recipes their requests were made, the later has the greater [Token].
// In short: a token tells when the transaction made the node, each lock grants conflicting
// contenders in the order of their nodes, and a request that consists of several nodes has
// all of them from one transaction.
//
// The order of nodes. A directory numbers its contenders in the order in which transactions
// make them, which is that of their czxids; within one transaction it is that of the creates,
// which is that of step. If the directory is deleted and made again, the numbers begin anew
// and czxids go on; near the end of the numbers contenders rank by czxid and step. A node is
// made once: a contender that has lost its own gets a new one behind all others.
//
//   - Mutex: a contender holds when its node is the first.
//   - Read-write lock: a writer holds when its node is the first, a reader when no writer's
//     node is before its own. So a writer's token is greater than those of all earlier
//     readers and writers, a reader's greater than those of all earlier writers. A
//     downgraded reader has its writer's token. Its node has the writer's number and a later
//     czxid, and writers wait for it by that number. Who comes next conflicts with the writer,
//     so it came behind the writer's node.
//   - Custom: of contenders that conflict, the later waits for the node of the earlier. A
//     rule by which neither of two kinds waits for the other has no order between them.
//   - Simple forms: their node is made at the moment of the grant, when the former holder's
//     is gone.
//   - Semaphore: one process at a time makes leases, as long as it is past the gate, and
//     the next makes its own when all of the former's are granted. Within a process each
//     request has its leases from a transaction of its own, or from several in a row if they do
//     not fit into one (64 leases, 512 KiB); leases hold in the order of their nodes, and a request that is given a
//     lease before its turn gives it back and makes it anew. So of two requests that do not
//     fit beside each other, all leases of the later came after all of the earlier's, and
//     any of them orders the two. Beside a multi-lock's lease, which keeps to its own turn,
//     the last one does: it is the token. Requests that fit beside each other do not
//     conflict, and their tokens need not increase.
//   - Shared permits: as long as the number does not grow, as before. When it grows, those who
//     hold already do not conflict with those who come in. When it shrinks, those who hold go
//     on, and the next waits until all that it does not fit beside are gone.
//   - Local queue: step counts the grants that one node serves, and starts at the node's own;
//     conflicting grants of one node follow one another. Those of another node have a
//     later czxid.
//   - Lock-delay: the node's order is that of a mutex; the delay only makes it wait longer.
//   - Multi-lock: one transaction makes the nodes of all members, or, with semaphores, the
//     leases and the nodes of all members when it is past all gates. All of them have the
//     same czxid and step, those of the last create, so the token is the right one in each
//     queue by the argument for its recipe. Creates that come before it in the transaction
//     have a smaller step, those behind a greater one.
//   - Re-entry: it has the token of the node that it enters. Into a multi-lock there is only
//     re-entry into all members by the nodes of one transaction, which have one token.
//
// A token is no measure for locks at different paths, but for multi-locks, which have one for
// all their members.
package actors

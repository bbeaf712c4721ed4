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
//   - lock (lock.go, queue.State): the queue of one directory, for mutexes, read-write
//     locks and rules of users. It asks the bridge, which owns the ZooKeeper connection.
//   - pool (pool.go, queue.Pool): a semaphore, which asks two locks.
//   - multi (multi.go): a multi-lock, which asks its members.
//   - lender (lender.go, queue.Lender): it lends one lock to all owners of the process,
//     be it to read or to write.
//   - simple (simple.go, queue.Simple): the simple forms, below a lender.
//
// A request of Go code is a claim (claim.go): to the actor it is an owner like any other.
package actors

// Package recipes holds the actors of locks: one for each recipe, around the pure state machine
// that decides. Each embeds a [shell.Shell], which deals with owners, and is its
// [shell.Behavior].
//
//   - lockActor (lock.go, lockqueue.State): the queue of one directory, for mutexes, read-write
//     locks and rules of users. It asks the bridge, which owns the ZooKeeper connection.
//   - localQueueActor (localqueue.go, localqueue.Queue): it acquires another actor's lock, the lock
//     below, and passes its node on among the owners of the process, for a limited time (a node hold).
//   - semaphoreActor (semaphore.go, semaphore.State): two locks below, the request queue and the
//     leases.
//   - multiLockActor (multilock.go): all or nothing of its members.
//
// To be read in this order: lock.go, an Acquire there and back; locksession.go, the loss of a session;
// lockevents.go, lockeffects.go, lockend.go and handoffs.go, the rest of a lockActor; delay.go; localqueue.go; atomiccreate.go, member.go and multilock.go; semaphore.go and
// permitcount.go; countnode.go; misuse.go and recognize.go; recipes.go, which makes each recipe.
package recipes

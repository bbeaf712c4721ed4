// Package recipes holds the actors of locks: one for each path, around the pure state machines that
// decide. Each embeds a [lock.Actor], which deals with owners, and is its [lock.Behavior]. The
// actor of a multi-lock has members; all others have directories on ZooKeeper (directory.go, a
// lockqueue.State each), and ask the bridge, which owns the connection.
//
//   - lockActor (lock.go): the queue of one directory, for mutexes, read-write locks and rules of users.
//   - localQueueActor (localqueue.go): a localqueue.Queue on top of one directory, whose node it passes on among the
//     owners of the process, for a limited time (a node hold).
//   - semaphoreActor (semaphore.go): a semaphore.State on top of two directories, the request queue and the leases.
//   - multiLockActor (multilock.go): all or nothing of its members, which are actors of their own.
//
// To be read in this order: lock.go and directory.go, an Acquire there and back; bridgeanswers.go,
// what comes from the bridge; directories.go, what no recipe decides, and the end; sessions.go, the loss of a session; awaitnode.go, the end of a withdrawn node; effects.go,
// what few directories do, and hand-offs; stacked.go, what the next two have in common;
// localqueue.go; semaphore.go and permitcount.go; atomiccreate.go, member.go, multilock.go and multilockend.go;
// misuse.go; recipes.go and options.go, which make each recipe; spec.go, a recipe as a message.
package recipes

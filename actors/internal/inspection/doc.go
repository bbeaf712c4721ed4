// Package inspection answers questions about locks that only ZooKeeper can answer, and asks holders to
// release: by the nodes alone, of the locks of any client and library, of all processes. A process with
// ZooKeeper answers its own questions. The locks of a lock server send theirs to it: there Answer
// answers them by the same functions. The package starts no actor of a lock, and asks those that run
// only what this process holds.
//
// The files, in reading order: questions.go (each kind of question, and how it is asked), answers.go (how
// a lock server answers), contender.go (the nodes of a queue), recognize.go (the recipe by the names),
// snapshot.go (the queue of a lock), semaphore.go (which leases hold), observe.go and follow.go (a queue
// as it changes), find.go (the locks below a path), verify.go (grants and tokens), generation.go (of
// tokens), count.go (SharedCount), health.go, revoke.go.
package inspection

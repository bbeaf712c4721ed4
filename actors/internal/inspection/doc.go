// Package inspection shows the queues of locks by their nodes alone, and asks their holders to
// release: the locks of any client and library, of all processes. It asks ZooKeeper over a bridge.
// It knows no handles, and neither starts nor asks the actor of a lock: the caller tells it when this
// process was granted a lock (see Granted). Of recipes it needs the rules and the names.
//
// The files, in reading order: contender.go (the nodes of a queue), recognize.go (the recipe by the
// names), snapshot.go (the queue of a lock), semaphore.go (which leases hold), observe.go (a queue
// as it changes), find.go (the locks below a path), generation.go (of tokens), revoke.go.
package inspection

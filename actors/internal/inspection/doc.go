// Package inspection shows the queues of locks by their nodes alone, and asks their holders to
// release: the locks of any client and library, of all processes. It asks ZooKeeper over a bridge,
// and knows neither handles nor the actors of locks. The caller tells it when this process was
// granted a lock (see Granted).
//
// The files, in reading order: contender.go (the nodes of a queue), snapshot.go (the queue of a lock
// whose recipe the names show), semaphore.go (which leases hold), observe.go (a queue as it
// changes), find.go (the locks below a path), generation.go (of tokens), revoke.go.
package inspection

package lockqueue

// Which nodes of this process are proven to exist.

// proofs are the clocks that a proof of an own node must be as new as, and the watches. An
// active watch proves that its node exists. So does an answer to a request that was made at
// contender.provenAt or later, if that is as late as each of these clocks: doubtedAt, staleAt and
// contender.doubtedAt.
type proofs struct {
	// doubtedAt is when it was last heard that a contender of another process has left, or that
	// a node of this process was missing.
	doubtedAt uint64
	// staleAt is the Tick before the last one, tickedAt the last one. staleAt <= tickedAt.
	staleAt, tickedAt uint64
	// departureSeenAt is when the last list came that shows departures.
	departureSeenAt uint64
	// watches holds the watches on nodes by name.
	watches map[string]*watch
	// watchAfterFailure is the serial of the WatchNodes for the holders because of a failed read.
	watchAfterFailure uint64
}

// watch is a watch on a node, from its WatchNodes on. It is active from the answer until the
// connection is gone: then it reports every change of the node.
type watch struct {
	serial uint64
	active bool
}

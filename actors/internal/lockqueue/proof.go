package lockqueue

// Which nodes of this process are proven to exist.

// proofs holds what State.proven asks: the doubts of all own nodes, and the watches. An active watch
// proves that its node exists. So does an answer that has shown the node, unless a doubt is later than
// contender.provenAt, the clock of the request for that answer. The doubts are doubtedAt and staleAt
// here, and the doubtedAt of the contender.
type proofs struct {
	// doubtedAt is when it was last heard that a contender of another process has left, or that
	// a node of this process was missing.
	doubtedAt uint64
	// staleAt is the Tick before the last one, tickedAt the last one. staleAt <= tickedAt.
	staleAt, tickedAt uint64
	// departureSeenAt is when the last list came that shows departures: the doubt of a node whose
	// Created comes later, if that list does not show it.
	departureSeenAt uint64
	// watches holds the watches on nodes by name.
	watches map[string]*watch
	// watchAfterFailure is the serial of the WatchNodes for the holders because of a failed read. If
	// it fails, too, readFailed does not repeat it.
	watchAfterFailure uint64
}

// watch is a watch on a node, from its WatchNodes on. It is active from the answer until the
// connection is gone: then it reports every change of the node.
type watch struct {
	serial uint64
	active bool
}

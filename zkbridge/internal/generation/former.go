package generation

// An ensemble may come back empty, or from a backup. Its transactions then have lower zxids than
// before, and so would the tokens. A server refuses a session that has seen a later zxid, but not a
// new one. The first transaction of a session goes through the leader, so its zxid is greater than
// each that a former session has seen, or history was lost. Then the bridge raises the generation
// before any lock is granted, unless another process has done so. Without the right to do it the
// bridge refuses all creates.
//
// The generation itself may go back while zxids do not: an operator writes a smaller number or
// deletes the node, or an ensemble that came back empty gets a backup of greater zxids later. A
// process that has seen the greater generation raises it, for those that have not.

// Former bounds the tokens of a process's former sessions: none is greater than the token of
// this generation and this zxid. A process without former sessions has the zero value.
type Former struct {
	Generation uint64
	Zxid       int64
}

// Add adds a session that is over. Its generation is 0 if it had none, and it has seen no greater
// zxid.
func (f *Former) Add(generation uint64, zxid int64) {
	if generation > f.Generation {
		*f = Former{Generation: generation}
	}
	f.Zxid = max(f.Zxid, zxid)
}

// IsHistoryLost reports whether ZooKeeper has lost transactions that a former session has seen.
// zxid is of the first transaction of the present session, 0 if it is not known.
func (f Former) IsHistoryLost(zxid int64) bool { return 0 < zxid && zxid <= f.Zxid }

// MustRaise reports whether tokens would go back in a session with this generation and this first
// zxid: those of this process, or, if the generation is less than it was, those of a process that
// starts now.
func (f Former) MustRaise(generation uint64, zxid int64) bool {
	return generation < f.Generation || generation == f.Generation && f.IsHistoryLost(zxid)
}

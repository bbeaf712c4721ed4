package queue

import (
	"cmp"
	"slices"
)

// Child is a child of a lock's directory, as an observer sees it.
type Child struct {
	Name  string
	Czxid int64
}

// Position is the place of a contender in the queue.
type Position struct {
	Child
	Kind  Kind
	Ahead int // contenders that come before it, whether they block it or not
	Holds bool
}

// Positions returns the contenders among the children in the order of the queue. It leaves out
// children of unknown names. With CountUnknown each of these takes a permit before all
// contenders; Ahead does not count them.
func (r Rule) Positions(children []Child) []Position {
	type ranked struct {
		Position
		rank int64
	}
	var all []ranked
	ahead := r.NewCensus() // of the contender in hand
	for _, c := range children {
		if seq, kind, ok := r.Parse(c.Name); ok {
			all = append(all, ranked{Position{Child: c, Kind: kind}, Rank(seq)})
		} else if r.CountUnknown {
			ahead[Exclusive]++
		}
	}
	// A downgraded reader has its writer's sequence number and a later czxid.
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Czxid, b.Czxid))
	})
	counted, first, positions := 0, 0, make([]Position, len(all))
	for i, c := range all {
		// Contenders with one number are of one owner and do not wait for each other, but for the last number.
		if c.rank != all[first].rank || c.rank == lastSeq {
			first = i
		}
		for ; counted < first; counted++ {
			ahead[all[counted].Kind]++
		}
		c.Ahead, c.Holds = first, r.Holds(ahead, c.Kind)
		positions[i] = c.Position
	}
	return positions
}

// Rank returns a number that orders sequence numbers as they were handed out. A negative one comes
// after 2^31-1: a ZooKeeper before 3.6 counts on from -2^31 there, and any does so within one
// transaction.
func Rank(seq int64) int64 {
	if seq < 0 {
		return seq + 1<<32
	}
	return seq
}

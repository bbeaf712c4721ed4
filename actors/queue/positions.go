package queue

import (
	"cmp"
	"math"
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
	byCzxid := slices.ContainsFunc(children, func(c Child) bool { return r.NearEnd(c.Name) })
	type ranked struct {
		Position
		rank int64
		seq  int64
	}
	var all []ranked
	ahead := r.NewCensus() // of the contender in hand
	for _, c := range children {
		if seq, kind, ok := r.Parse(c.Name); ok {
			all = append(all, ranked{Position{Child: c, Kind: kind}, Rank(byCzxid, seq, c.Czxid), seq})
		} else if r.CountUnknown {
			ahead[Exclusive]++
		}
	}
	// A downgraded reader has its writer's sequence number and a later czxid. The nodes of one transaction have
	// one czxid and increasing sequence numbers, which may wrap near their end.
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(int32(a.seq-b.seq), 0))
	})
	counted, positions := 0, make([]Position, len(all))
	for i, c := range all {
		first := i
		if !NearEnd(c.seq) { // contenders with one number are of one owner and do not wait for each other
			for first > 0 && all[first-1].rank == c.rank {
				first--
			}
		}
		for ; counted < first; counted++ {
			ahead[all[counted].Kind]++
		}
		c.Ahead, c.Holds = first, r.Holds(ahead, c.Kind)
		positions[i] = c.Position
	}
	return positions
}

// Rank returns the number that orders a contender in the queue: without byCzxid its sequence number. With
// byCzxid it is the czxid if the sequence number is near the end. The other contenders keep their order,
// and rank below all those.
func Rank(byCzxid bool, seq, czxid int64) int64 {
	switch {
	case !byCzxid:
		return seq
	case NearEnd(seq):
		return czxid
	}
	return seq + math.MinInt64/2 // below each czxid
}

package queue

import (
	"cmp"
	"slices"
)

// Seen is a child of a lock's directory, as an observer sees it.
type Seen struct {
	Name  string
	Czxid int64
}

// Standing is where a contender stands in the queue.
type Standing struct {
	Seen
	Kind  Kind
	Ahead int // contenders that come before it, whether they block it or not
	Holds bool
}

// Standings puts the contenders among the children in their order. Children of
// unknown names are left out.
func (r Rule) Standings(children []Seen) []Standing {
	byCzxid := slices.ContainsFunc(children, func(c Seen) bool { return r.nearTheEnd(c.Name) })
	type ranked struct {
		Standing
		rank rank
	}
	var all []ranked
	for _, c := range children {
		if seq, kind, ok := r.Parse(c.Name); ok {
			all = append(all, ranked{Standing{Seen: c, Kind: kind}, rankOf(byCzxid, seq, c.Czxid)})
		}
	}
	// Who downgrades stands at its writer's place.
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(a.rank.compare(b.rank), cmp.Compare(a.Czxid, b.Czxid)) })
	kinds, standings := make([]Kind, len(all)), make([]Standing, len(all))
	for i, c := range all {
		kinds[i] = c.Kind
	}
	for i, c := range all {
		// Contenders of one place are one owner's: they do not wait for each other.
		first := i
		for first > 0 && !byCzxid && all[first-1].rank == c.rank {
			first--
		}
		c.Ahead, c.Holds = first, r.Holds(kinds[:first], c.Kind)
		standings[i] = c.Standing
	}
	return standings
}

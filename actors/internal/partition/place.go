package partition

import (
	"container/heap"
	"slices"
)

// Place is the members that campaign for a partition, as indexes into the list of members; -1 for
// none. The best one shall lead, and the second one waits to take over.
type Place struct{ Best, Second int }

// Places returns the place of each of n partitions, for members with different ids. It depends on
// nothing else, not on the order of the ids: all processes get the same members.
//
// It is rendezvous hashing with a bound. Each partition has a score with each member, and wants the
// member with which it has the highest one. A member takes as many as its capacity, those with the
// highest scores, and the others go on to their next member. So few partitions move when a member
// comes or goes: those of that member, and some that the bound had kept from their first member.
func Places(ids []uint64, n int) []Place {
	places := slices.Repeat([]Place{{-1, -1}}, n)
	capacity := Capacity(len(ids), n)
	taken := make([]claims, len(ids))
	for p := range n {
		c, more := claim{partition: p}, len(ids) > 0
		for refused := false; more; refused = true {
			// There is such a member, because all capacities together suffice.
			m := highest(ids, c.partition, func(_ int, score uint64) bool { return !refused || score < c.score })
			c.score = score(ids[m], c.partition)
			c, more = taken[m].take(c, capacity)
		}
	}
	for m, all := range taken {
		for _, c := range all {
			second := highest(ids, c.partition, func(other int, _ uint64) bool { return other != m })
			places[c.partition] = Place{m, second}
		}
	}
	return places
}

// Capacity returns how many of n partitions a member leads at most: a tenth more than the mean, or the
// mean if that has no room for a tenth.
func Capacity(members, n int) int {
	if members == 0 {
		return 0
	}
	return max((n+members-1)/members, n*11/(members*10))
}

// claim is a partition that wants a member, by their score.
type claim struct {
	partition int
	score     uint64
}

// highest returns which of the members that may have a partition has the highest score with it, or -1. may is
// given a member and its score.
func highest(ids []uint64, p int, may func(m int, score uint64) bool) int {
	found := -1
	var most uint64
	for m, id := range ids {
		if s := score(id, p); (found < 0 || s > most) && may(m, s) {
			found, most = m, s
		}
	}
	return found
}

// score is different for different members of a partition, and for different partitions of a member,
// because mix is a bijection.
func score(id uint64, p int) uint64 { return mix(id ^ mix(uint64(p)+1)) }

// mix is the end of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// Of returns which of n partitions a key is in: by the FNV-1a hash of its bytes, with 64 bits. It never
// changes, so that programs may keep data by it.
func Of(key string, n int) int {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return int(mix(h) % uint64(n))
}

// claims are the claims that a member has taken: a heap with the lowest score first.
type claims []claim

func (h claims) Len() int           { return len(h) }
func (h claims) Less(i, j int) bool { return h[i].score < h[j].score }
func (h claims) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *claims) Push(any)          {} // take appends by itself, which allocates nothing for each claim
func (h *claims) Pop() any          { return nil }

// take takes a claim. A member that is full passes the lowest one of its claims on, and returns it.
func (h *claims) take(c claim, capacity int) (passed claim, full bool) {
	if len(*h) < capacity {
		*h = append(*h, c)
		heap.Fix(h, len(*h)-1)
		return claim{}, false
	}
	lowest := &(*h)[0]
	if c.score <= lowest.score {
		return c, true
	}
	passed, *lowest = *lowest, c
	heap.Fix(h, 0)
	return passed, true
}

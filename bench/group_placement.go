package main

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// placement has the member that shall lead each partition, and the one that shall wait for it (0: none).
type placement struct{ first, second []int }

// place places partitions by rendezvous hashing with a bound on the load: no member shall lead more than a tenth above the mean. This
// library's partitions have a function of the same kind.
func place(members []int, count int) placement {
	p := placement{make([]int, count), make([]int, count)}
	if len(members) == 0 {
		return p
	}
	bound := (count*11 + 10*len(members) - 1) / (10 * len(members))
	load := map[int]int{}
	for n := range count {
		ranked := rank(members, n)
		for i, m := range ranked {
			if load[m] < bound {
				load[m]++
				p.first[n] = m
				ranked = slices.Delete(ranked, i, i+1)
				break
			}
		}
		if len(ranked) > 0 {
			p.second[n] = ranked[0]
		}
	}
	return p
}

// rank returns the members by their claim to the partition.
func rank(members []int, partition int) []int {
	claims := map[int]uint64{}
	for _, m := range members {
		claims[m] = claim(m, partition)
	}
	ranked := slices.Clone(members)
	slices.SortFunc(ranked, func(a, b int) int {
		if claims[a] < claims[b] {
			return -1
		}
		return 1
	})
	return ranked
}

// claim hashes a member and a partition. FNV alone leaves neighbours alike.
func claim(member, partition int) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(member)), uint64(partition)))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

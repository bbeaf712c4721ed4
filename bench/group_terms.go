package main

import (
	"math"
	"slices"
	"time"
)

// term is a term of a partition.
type term struct {
	partition, member  int
	begun, sure, ended int64 // ended is lasting while it lasts
}

const lasting = math.MaxInt64

// termsOf returns the terms in the records of a member, whose terms have all ended at the instant until.
func termsOf(member int, records []termRecord, until int64) (terms []term) {
	for i := range records {
		r := &records[i]
		partition := int(r.partition.Load()) - 1
		if partition < 0 {
			break
		}
		ended := r.ended.Load()
		if ended == 0 {
			ended = lasting
		}
		terms = append(terms, term{partition, member, r.begun.Load(), r.sure.Load(), min(ended, until)})
	}
	return terms
}

// leadersAt returns the members that lead each partition at the instant.
func leadersAt(terms []term, count int, at int64) [][]int {
	leaders := make([][]int, count)
	for _, t := range terms {
		if t.begun <= at && at < t.ended {
			leaders[t.partition] = append(leaders[t.partition], t.member)
		}
	}
	return leaders
}

// lastChange returns the last instant at which a term has begun or ended.
func lastChange(terms []term) (at int64) {
	for _, t := range terms {
		at = max(at, t.begun)
		if t.ended != lasting {
			at = max(at, t.ended)
		}
	}
	return at
}

// moves are the partitions whose leader is another one at the end of a time than at the beginning.
type moves struct {
	count   int
	without []time.Duration // for how long each of them had no leader, in order
}

// movesBetween returns the partitions that moved.
func movesBetween(terms []term, count int, from, until int64) (m moves) {
	before, after := leadersAt(terms, count, from), leadersAt(terms, count, until)
	ofPartition := make([][]term, count)
	for _, t := range terms {
		ofPartition[t.partition] = append(ofPartition[t.partition], t)
	}
	for p := range count {
		if len(after[p]) == 0 || slices.Contains(before[p], after[p][0]) {
			continue
		}
		m.count++
		m.without = append(m.without, withoutLeader(ofPartition[p], from, until))
	}
	slices.Sort(m.without)
	return m
}

// withoutLeader returns how long none of the terms, which are of one partition, lasted.
func withoutLeader(terms []term, from, until int64) (sum time.Duration) {
	slices.SortFunc(terms, func(a, b term) int { return int(a.begun - b.begun) })
	led := from
	for _, t := range terms {
		if t.begun >= until {
			break
		}
		sum += time.Duration(max(t.begun-led, 0))
		led = max(led, t.ended)
	}
	return sum + time.Duration(max(until-led, 0))
}

// doubles returns the partitions of which two members believed at one instant, from from on, that they lead. One of the two is
// the member with, unless that is 0. A member believes it from the beginning of its term to the last time that it asked.
func doubles(terms []term, count int, from int64, with int) (n int) {
	double := make([]bool, count)
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			if a.partition != b.partition || a.member == b.member || with != 0 && a.member != with && b.member != with {
				continue
			}
			if max(a.begun, b.begun, from) < min(a.sure, b.sure) {
				double[a.partition] = true
			}
		}
	}
	for _, d := range double {
		n += btoi(d)
	}
	return n
}

// loads returns how many partitions each member leads.
func loads(leaders [][]int) map[int]int {
	load := map[int]int{}
	for _, list := range leaders {
		for _, m := range list {
			load[m]++
		}
	}
	return load
}

// loadRatio returns the number of partitions of the member that leads most, in the ratio to the mean.
func loadRatio(leaders [][]int) float64 {
	load, most := loads(leaders), 0
	for _, n := range load {
		most = max(most, n)
	}
	return float64(most*len(load)) / float64(len(leaders))
}

package main

import (
	"maps"
	"slices"
)

// summary is the result of a peer in a scenario over all rounds: medians, and the sum of the violations.
type summary struct {
	peer          string
	ops, p50, p99 float64
	low, high     float64 // the slowest and the fastest round, in operations per second
	spread        float64
	violations    int
	extra         map[string]float64
	rounds        map[int]run
	idle          []int // the rounds in which the peer did nothing, in order; they are in no median of ops, p50 and p99
}

// summaries has the summaries by scenario and peer.
type summaries map[string]map[string]*summary

func (r *results) summarize() summaries {
	groups := map[[2]string][]run{}
	for _, run := range r.Runs {
		key := [2]string{run.Scenario, run.Peer}
		groups[key] = append(groups[key], run)
	}
	all := summaries{}
	for key, runs := range groups {
		if all[key[0]] == nil {
			all[key[0]] = map[string]*summary{}
		}
		all[key[0]][key[1]] = summarizeRuns(key[1], runs)
	}
	return all
}

func summarizeRuns(peer string, runs []run) *summary {
	s := &summary{peer: peer, extra: map[string]float64{}, rounds: map[int]run{}}
	var ops, p50s, p99s []float64
	extra := map[string][]float64{}
	for _, r := range runs {
		s.violations += r.Violations
		s.rounds[r.Round] = r
		for key, value := range r.Extra {
			extra[key] = append(extra[key], value)
		}
		if r.OpsPerSec == 0 {
			s.idle = append(s.idle, r.Round)
			continue
		}
		ops, p50s, p99s = append(ops, r.OpsPerSec), append(p50s, r.P50), append(p99s, r.P99)
	}
	slices.Sort(s.idle)
	s.ops, s.p50, s.p99, s.spread = median(ops), median(p50s), median(p99s), spread(ops)
	if len(ops) > 0 {
		s.low, s.high = slices.Min(ops), slices.Max(ops)
	}
	for key, values := range extra {
		s.extra[key] = median(values)
	}
	return s
}

// peersIn returns the summaries of a scenario in the order of the report.
func (all summaries) peersIn(scenario string) []*summary {
	var list []*summary
	for _, p := range peers {
		if s := all[scenario][p.name]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (s *summary) extraKeys() []string { return slices.Sorted(maps.Keys(s.extra)) }

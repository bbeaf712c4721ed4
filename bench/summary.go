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
	pick := func(f func(run) float64) []float64 {
		var values []float64
		for _, r := range runs {
			values = append(values, f(r))
		}
		return values
	}
	ops := pick(func(r run) float64 { return r.OpsPerSec })
	s := &summary{
		peer:   peer,
		ops:    median(ops),
		p50:    median(pick(func(r run) float64 { return r.P50 })),
		p99:    median(pick(func(r run) float64 { return r.P99 })),
		low:    slices.Min(ops),
		high:   slices.Max(ops),
		spread: spread(ops),
		extra:  map[string]float64{},
		rounds: map[int]run{},
	}
	for _, r := range runs {
		s.violations += r.Violations
		s.rounds[r.Round] = r
	}
	for key := range runs[0].Extra {
		s.extra[key] = median(pick(func(r run) float64 { return r.Extra[key] }))
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

package main

import (
	"fmt"
	"maps"
	"slices"
)

// bar is a measured goal. Its value is the median of the values of each round: the peers of a round are measured one
// shortly after the other, so that a change of the machine's speed matters little.
type bar struct {
	Text    string  `json:"bar"`
	Value   float64 `json:"value"`
	Reached *bool   `json:"reached"` // nil: not measured
}

// goal is the ratio of two figures that this library shall reach: atLeast or atMost, of which one is 0.
type goal struct {
	over, under figure
	atLeast     float64
	atMost      float64
}

// figure names a value of a summary. A figure without a scenario is 1.
type figure struct {
	scenario, peer, key string // key: ops, p50, or an extra field
}

func ops(scenario, peer string) figure { return figure{scenario, peer, "ops"} }
func p50(scenario, peer string) figure { return figure{scenario, peer, "p50"} }

var goals = []goal{
	{over: p50("uncontended", "actorlock"), under: p50("uncontended", "raw"), atMost: 1.10},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "zklock"), atLeast: 40},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "raw"), atLeast: 5},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "curator"), atLeast: 200},
	{over: ops("many256", "actorlock"), under: ops("many256", "raw"), atLeast: 6},
	{over: ops("many256", "actorlock"), under: ops("many256", "curator"), atLeast: 15},
	{over: p50("handoff", "actorlock"), under: p50("handoff", "zklock"), atMost: 0.75},
	{over: figure{"handoff", "actorlock", waitingKey}, under: figure{"handoff", "zklock", waitingKey}, atMost: 0.75},
	{over: ops("hot64", "actorlock-local"), atLeast: 300_000},
	{over: ops("hot64", "actorlock-local"), under: ops("hot64", "zklock"), atLeast: 300},
	{over: figure{"scale", "actorlock", queueKey(10_000)}, under: figure{"scale", "actorlock", queueKey(100)}, atLeast: 0.8},
	{over: figure{"fleet", "actorlock", handoffKey(8)}, under: figure{"fleet", "actorlock", handoffKey(2)}, atMost: 1.3},
	{over: figure{"fleet", "actorlock", packetsOf(8)}, under: figure{"fleet", "actorlock", packetsOf(2)}, atMost: 1.2}, // nearly constant: pings, and locks that are found free, differ
	{over: ops("rw90", "actorlock"), under: ops("rw90", "curator"), atLeast: 10},
	{over: ops("semaphore", "actorlock"), under: ops("semaphore", "curator"), atLeast: 10},
}

func (f figure) of(r run) float64 {
	switch f.key {
	case "ops":
		return r.OpsPerSec
	case "p50":
		return r.P50
	}
	return r.Extra[f.key]
}

func (f figure) String() string {
	switch f.key {
	case "ops":
		return f.peer + " per second"
	case "p50":
		return "p50 of " + f.peer
	}
	return fmt.Sprintf("%s of %s", f.key, f.peer)
}

func (g goal) String() string {
	text := g.over.scenario + ": " + g.over.String()
	if g.atMost > 0 {
		text += fmt.Sprintf(" at most %v", g.atMost)
	} else {
		text += fmt.Sprintf(" at least %v", g.atLeast)
	}
	if g.under.scenario != "" {
		text += " × " + g.under.String()
	}
	return text
}

func (g goal) measure(all summaries) bar {
	b := bar{Text: g.String()}
	ratios := all.ratios(g.over, g.under)
	if len(ratios) == 0 {
		return b
	}
	b.Value = median(ratios)
	reached := g.atMost > 0 && b.Value <= g.atMost || g.atLeast > 0 && b.Value >= g.atLeast
	b.Reached = &reached
	return b
}

// ratios returns the ratio of two figures for each round in which both were measured, in the order of the rounds. A figure of 0 counts as not measured.
func (all summaries) ratios(over, under figure) (ratios []float64) {
	rounds := all.rounds(over)
	for _, round := range slices.Sorted(maps.Keys(rounds)) {
		r, base := rounds[round], 1.0
		if under.scenario != "" {
			base = under.of(all.rounds(under)[round])
		}
		if value := over.of(r); value > 0 && base > 0 {
			ratios = append(ratios, value/base)
		}
	}
	return ratios
}

// rounds returns the runs of the figure's scenario and peer, by round.
func (all summaries) rounds(f figure) map[int]run {
	if s := all[f.scenario][f.peer]; s != nil {
		return s.rounds
	}
	return nil
}

func measureBars(all summaries) []bar {
	var bars []bar
	for _, g := range goals {
		bars = append(bars, g.measure(all))
	}
	return bars
}

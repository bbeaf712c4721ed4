package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// bar is a measured goal. Its value is the median of the values of each round: the peers of a round are measured one
// shortly after the other, so that a change of the machine's speed matters little.
type bar struct {
	Text    string  `json:"bar"`
	Value   float64 `json:"value"`
	Low     float64 `json:"low"` // its limits
	High    float64 `json:"high"`
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
	scenario, peer, key string  // key: ops, p50, roundTripsKey, inTurnKey, processorsKey, or an extra field
	plus                float64 // what a goal adds to the value
	calls               float64 // how many bare calls a goal adds to it
}

func ops(scenario, peer string) figure { return extra(scenario, peer, "ops") }
func p50(scenario, peer string) figure { return extra(scenario, peer, "p50") }
func extra(scenario, peer, key string) figure {
	return figure{scenario: scenario, peer: peer, key: key}
}

func (f figure) and(plus float64) figure {
	f.plus = plus
	return f
}

func (f figure) andCalls(n float64) figure {
	f.calls = n
	return f
}

// bareCall is the time of a bare gRPC call.
var bareCall = p50("remote", "grpc")

// inTurnKey is how many acquires, one behind the other, make a second.
const inTurnKey = "in turn per second"

// The fields of a run over a network, measured in its round: the time of a bare round trip, and how many there are in a second.
const (
	bareKey       = "bare_round_trip_us"
	roundTripsKey = "round trips per second"
)

// reportSureness is the probability with which the limits of a ratio in the report have the true median.
const reportSureness = 0.95

var goals = []goal{
	{over: p50("uncontended", "actorlock"), under: p50("uncontended", "raw"), atMost: 1.08},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "zklock"), atLeast: 40},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "raw"), atLeast: 5},
	{over: ops("hot64", "actorlock"), under: ops("hot64", "curator"), atLeast: 200},
	{over: ops("many256", "actorlock"), under: ops("many256", "raw"), atLeast: 6},
	{over: ops("many256", "actorlock"), under: ops("many256", "curator"), atLeast: 15},
	{over: ops("hot64", "actorlock-local"), atLeast: 300_000},
	{over: ops("hot64", "actorlock-local"), under: ops("hot64", "zklock"), atLeast: 300},
	{over: extra("scale", "actorlock", queueKey(10_000)), under: extra("scale", "actorlock", queueKey(100)), atLeast: 0.8},
	{over: extra("fleet", "actorlock", handoffKey(8)), under: extra("fleet", "actorlock", handoffKey(2)), atMost: 1.3},
	{over: extra("fleet", "actorlock", packetsOf(8)), under: extra("fleet", "actorlock", packetsOf(2)), atMost: 1.2}, // nearly constant: pings, and locks that are found free, differ
	{over: ops("fleet", "actorlock"), under: ops("fleet", "zklock"), atLeast: 1.2},
	{over: ops("rtt2-fleet", "actorlock"), under: ops("rtt2-fleet", "zklock"), atLeast: 1.7},
	{over: ops("rtt10-fleet", "actorlock"), under: ops("rtt10-fleet", "zklock"), atLeast: 1.7},
	{over: ops("rtt2-fleet-hold", "actorlock"), under: ops("rtt2-fleet-hold", "zklock"), atLeast: 1.2},
	{over: ops("rtt10-fleet-hold", "actorlock"), under: ops("rtt10-fleet-hold", "zklock"), atLeast: 1.5},
	{over: extra("rtt2-handoff", "actorlock", waitingKey), under: extra("rtt2-handoff", "actorlock", bareKey), atMost: 1.1},
	{over: extra("fleet", "actorlock", packetsOf(8)), under: extra("fleet", "zklock", packetsOf(8)), atMost: 1},
	{over: extra("fleet", "actorlock", packetsOf(2)), under: extra("fleet", "zklock", packetsOf(2)).and(0.5), atMost: 1},
	{over: p50("rtt2-uncontended", "actorlock"), under: p50("rtt2-uncontended", "raw"), atMost: 1.02},
	{over: p50("handoff", "actorlock"), under: p50("handoff", "zklock"), atMost: 0.9},
	{over: extra("handoff", "actorlock", waitingKey), under: extra("handoff", "zklock", waitingKey), atMost: 0.6},
	{over: ops("rtt2-hot64", "actorlock"), under: extra("rtt2-hot64", "actorlock", roundTripsKey), atLeast: 0.70 * 64},
	{over: ops("rtt10-hot64", "actorlock"), under: extra("rtt10-hot64", "actorlock", roundTripsKey), atLeast: 0.75 * 64},
	{over: p50("rtt2-cold", "actorlock"), under: extra("rtt2-cold", "actorlock", bareKey), atMost: 1.1},
	{over: p50("rtt10-cold", "actorlock"), under: extra("rtt10-cold", "actorlock", bareKey), atMost: 1.1},
	{over: ops("rtt2-cold64", "actorlock"), under: ops("rtt2-cold64", "zklock"), atLeast: 5},
	{over: ops("cold256", "actorlock"), under: ops("many256", "actorlock"), atLeast: 0.3},
	{over: extra("growth", "actorlock", newLocksKey(1000)), under: ops("many256", "actorlock"), atLeast: 0.25},
	{over: extra("growth", "actorlock", newLocksKey(10_000)), under: ops("many256", "actorlock"), atLeast: 0.25},
	{over: extra("growth", "actorlock", newLocksKey(100_000)), under: ops("many256", "actorlock"), atLeast: 0.25},
	{over: p50("rtt10-cold256", "actorlock"), under: p50("rtt10-cold256", "zklock"), atMost: 0.3},
	{over: ops("rw90", "actorlock"), under: ops("rw90", "curator"), atLeast: 10},
	{over: ops("semaphore", "actorlock"), under: ops("semaphore", "curator"), atLeast: 10},
	{over: ops("remote-many256", "actorlock-remote"), under: ops("remote-many256", "actorlock"), atLeast: 0.5},
	{over: ops("remote-hot64", "actorlock-remote"), under: ops("remote-hot64", "zklock"), atLeast: 2},
	{over: p50("remote", "actorlock-remote"), under: p50("remote", "actorlock").andCalls(2.5), atMost: 1},
	{over: ops("remote-hot64", "actorlock-remote"), under: extra("remote", "grpc", inTurnKey), atLeast: 0.70},
}

func (f figure) of(r run) float64 {
	switch f.key {
	case "ops":
		return r.OpsPerSec
	case "p50":
		return r.P50
	case roundTripsKey:
		return 1e6 / r.Extra[bareKey] // +Inf without a network
	case inTurnKey:
		return 1e6 / r.P50
	case processorsKey:
		return r.Extra[clientTimeKey] + r.Extra[serverTimeKey]
	}
	return r.Extra[f.key]
}

func (f figure) String() string {
	switch f.key {
	case "ops":
		return f.peer + " per second"
	case inTurnKey:
		return f.peer + " " + inTurnKey
	case "p50":
		return f.withPlus("p50 of " + f.peer)
	case roundTripsKey, bareKey:
		return f.key
	}
	return f.withPlus(fmt.Sprintf("%s of %s", f.key, f.peer))
}

func (f figure) withPlus(text string) string {
	switch {
	case f.calls != 0:
		return fmt.Sprintf("(%s + %v × %s)", text, f.calls, bareCall)
	case f.plus != 0:
		return fmt.Sprintf("(%s + %v)", text, f.plus)
	}
	return text
}

func (g goal) String() string {
	text := g.over.scenario + ": " + g.over.String()
	if g.atMost > 0 {
		text += fmt.Sprintf(" at most %v", g.atMost)
	} else {
		text += fmt.Sprintf(" at least %v", g.atLeast)
	}
	if g.under.scenario != "" {
		text += " × "
		if g.under.scenario != g.over.scenario {
			text += g.under.scenario + ": "
		}
		text += g.under.String()
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
	b.Low, b.High = interval(ratios, reportSureness)
	reached := g.atMost > 0 && b.Value <= g.atMost || g.atLeast > 0 && b.Value >= g.atLeast
	b.Reached = &reached
	return b
}

// ratios returns the ratio of two figures for each round in which both were measured, in the order of the rounds. A figure of 0 counts as not measured.
func (all summaries) ratios(over, under figure) (ratios []float64) {
	for _, round := range slices.Sorted(maps.Keys(all.rounds(over))) {
		value, ok := all.value(over, round)
		if base, measured := all.value(under, round); ok && measured {
			ratios = append(ratios, value/base)
		}
	}
	return ratios
}

// value returns a figure in a round, and whether it was measured. 0 and +Inf were not.
func (all summaries) value(f figure, round int) (v float64, measured bool) {
	if f.scenario == "" {
		return 1, true
	}
	v = f.of(all.rounds(f)[round])
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	if f.calls == 0 {
		return v + f.plus, true
	}
	call, measured := all.value(bareCall, round)
	return v + f.calls*call, measured
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

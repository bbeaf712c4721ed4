package main

import (
	"context"
	"slices"
	"time"
)

// scenario is a way to use a lock, measured for each peer that fits. A new scenario is a value of this type in a file of its
// own, listed in scenarios. A new behaviour of clients becomes a field of load and of access.
type scenario struct {
	name  string
	about string
	fits  func(p peer) bool
	run   func(ctx context.Context, t *trial) (run, error)

	route route // from the peers to ZooKeeper

	costly bool // the preparation takes longer than the measurement: the scenario has the fewest rounds, and longer ones
	brief  bool // the scenario has no preparation, and a few percent matter: it has more rounds, and shorter ones
}

// A brief scenario has briefFactor times as many rounds, unless they would be shorter than minBriefRound.
const (
	briefFactor   = 5
	minBriefRound = 20 * time.Millisecond
)

// route is where ZooKeeper is. Its zero value is one server on the loopback.
type route struct {
	roundTrip time.Duration // of the network between; 0: none
	ensemble  bool
}

func (s scenario) label() string { return s.name }

// rounds returns the number and the length of the scenario's rounds, which take as long in all as n rounds of the length.
func (s scenario) rounds(n int, length time.Duration) (int, time.Duration) {
	switch {
	case s.costly:
		return minRounds, length * time.Duration(n) / minRounds
	case s.brief && length >= briefFactor*minBriefRound:
		return n * briefFactor, length / briefFactor
	}
	return n, length
}

// scenarios are all scenarios, in the order of the report.
var scenarios = slices.Concat([]scenario{uncontended, hot64, many256, many256Acknowledged, handoff, fleet, fleetHold, cold1, cold64, cold256, futures, scale, rw90,
	semaphore3, simpleHerd, beside}, overNetworks(), []scenario{onEnsemble(uncontended), onEnsemble(fleet), processes, growth, partitions}, remoteScenarios())

// run is the result of a peer in a round of a scenario, as in results.json.
type run struct {
	Scenario   string             `json:"scenario"`
	Peer       string             `json:"peer"`
	Round      int                `json:"round"`
	OpsPerSec  float64            `json:"ops_per_sec"`
	P50        float64            `json:"p50_us"`
	P99        float64            `json:"p99_us"`
	Violations int                `json:"violations"`
	Extra      map[string]float64 `json:"extra,omitempty"`
}

// trial is the environment and the parameters of one run.
type trial struct {
	*environment
	peer   peer
	length time.Duration // of the measured time
}

// warmUp returns how long a load runs before its window.
func warmUp(length time.Duration) time.Duration {
	return min(max(length/5, 50*time.Millisecond), time.Second)
}

// load runs a load in processes of the peer for the given time.
func (t *trial) load(ctx context.Context, processes int, l load, length time.Duration) (run, error) {
	workers, err := t.ensureWorkers(ctx, t.peer, processes)
	if err != nil {
		return run{}, err
	}
	l.path = t.newPath(t.peer.name)
	sum, err := t.work(ctx, t.peer, workers, l, warmUp(length), length)
	return sum.run(length), err
}

func (t tally) run(length time.Duration) run {
	return run{
		OpsPerSec:  float64(t.ops) / length.Seconds(),
		P50:        micros(t.latencies.percentile(50)),
		P99:        micros(t.latencies.percentile(99)),
		Violations: t.violations,
		Extra:      t.used.per(t.total),
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// inOneProcess returns a scenario of clients of one process that acquire and release without pause.
func inOneProcess(name, about string, l load) scenario {
	return scenario{
		name:  name,
		about: about,
		fits:  func(peer) bool { return true },
		run: func(ctx context.Context, t *trial) (run, error) {
			return t.load(ctx, 1, l, t.length)
		},
	}
}

// inShortRounds makes a scenario brief.
func inShortRounds(s scenario) scenario {
	s.brief = true
	return s
}

package main

import (
	"context"
	"time"
)

// scenario is a way to use a lock, measured for each peer that can be used so. A new one is a file with a value of this
// type, listed in scenarios; what its clients do differently from others becomes a field of load and of access.
type scenario struct {
	name  string
	about string
	fits  func(p peer) bool
	run   func(ctx context.Context, t *trial) (run, error)

	costly bool // to set it up takes longer than to measure it: it has as few rounds as may be, and longer ones
	brief  bool // there is nothing to set up, and few percent matter: it has many times as many rounds, and shorter ones
}

// A brief scenario has so many rounds for each that is asked for, unless they would be too short to tell anything.
const (
	briefly  = 5
	briefest = 20 * time.Millisecond
)

func (s scenario) label() string { return s.name }

// rounds is how many there are if as many of this length are asked for, and how long they are: as long in all.
func (s scenario) rounds(asked int, length time.Duration) (int, time.Duration) {
	switch {
	case s.costly:
		return minRounds, length * time.Duration(asked) / minRounds
	case s.brief && length >= briefly*briefest:
		return asked * briefly, length / briefly
	}
	return asked, length
}

// scenarios are all, in the order of the report.
var scenarios = []scenario{uncontended, hot64, many256, handoff, fleet, futures, scale, rw90, semaphore3, simpleHerd, beside}

// run is what results.json has for a scenario, a peer and a round.
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

// trial is one run to be made.
type trial struct {
	*site
	peer   peer
	length time.Duration // of what is measured
}

// warmUp is how long a load runs before it counts.
func warmUp(length time.Duration) time.Duration {
	return min(max(length/5, 50*time.Millisecond), time.Second)
}

// load has some processes of the peer run a load for the given time.
func (t *trial) load(ctx context.Context, processes int, l load, length time.Duration) (run, error) {
	sum, err := t.tally(ctx, processes, l, length)
	return sum.run(length), err
}

func (t *trial) tally(ctx context.Context, processes int, l load, length time.Duration) (tally, error) {
	crew, err := t.crew(ctx, t.peer, processes)
	if err != nil {
		return tally{}, err
	}
	l.path = t.newPath(t.peer.name)
	return t.work(ctx, crew, l, warmUp(length), length)
}

func (t tally) run(length time.Duration) run {
	return run{
		OpsPerSec:  float64(t.ops) / length.Seconds(),
		P50:        micros(t.latencies.percentile(50)),
		P99:        micros(t.latencies.percentile(99)),
		Violations: t.violations,
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// inOneProcess is a scenario of clients that acquire and release without pause.
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

func inShortRounds(s scenario) scenario {
	s.brief = true
	return s
}

package main

import (
	"context"
	"fmt"
	"maps"
	"time"
)

var handoff = scenario{
	name: "handoff",
	about: "Two processes with a client each pass one lock to and fro: hand-offs per second, and the time from the release " +
		"in one process to the grant in the other. The holder waits for each release, because most peers have no other form. " +
		"In the first half of the time holders release at once, mostly before the other is in the queue, so that the time includes most of " +
		"its acquire; in the second half they keep the lock for a moment, and the other waits in the queue by then (waiting).",
	fits: isLock,
	run: func(ctx context.Context, t *trial) (run, error) {
		pass := load{clients: 1, locks: 1, acknowledged: true}
		atOnce, err := t.load(ctx, 2, pass, t.length/2)
		if err != nil {
			return run{}, err
		}
		pass.hold = holdTime
		waiting, err := t.load(ctx, 2, pass, t.length-t.length/2)
		atOnce.Violations += waiting.Violations
		atOnce.Extra[waitingKey] = waiting.P50
		return atOnce, err
	},
}

// holdTime is several round trips, after which the next holder is in the queue and watches.
const holdTime = 5 * time.Millisecond

const waitingKey = "p50_us_waiting"

// The numbers of processes that share the lock of scenario fleet, and those of scenario processes.
var (
	fleetSizes   = []int{2, 8}
	processSizes = []int{2, 4, 8, 16, 32, 64}
)

var (
	fleet     = passedAround("fleet", 0, fleetSizes)
	fleetHold = passedAround("fleet-hold", holdTime, fleetSizes)
	processes = manyProcesses()
)

// manyProcesses returns a scenario of the Go peers, because a virtual machine for each process needs too much memory.
func manyProcesses() scenario {
	s := passedAround("processes", 0, processSizes)
	s.costly = true
	s.fits = func(p peer) bool { return p.reference && p.name != curator.name && isLock(p) }
	pass := s.run
	s.run = func(ctx context.Context, t *trial) (run, error) {
		defer t.stopWorkers(t.peer) // so many would disturb others
		return pass(ctx, t)
	}
	return s
}

// passedAround returns a scenario of processes that pass one lock around, and hold it for a time. The line in the report is for
// the last number of processes.
func passedAround(name string, hold time.Duration, sizes []int) scenario {
	about := fmt.Sprintf("Processes with a client each pass one lock around: %v of them, the line in the table for %d. Each number gets half of the time. A client "+
		"that has released asks again as soon as the peer allows, so that a client always waits. ZooKeeper counts the packets.", sizes, sizes[len(sizes)-1])
	if hold > 0 {
		about += fmt.Sprintf(" Each holder keeps the lock for %v.", hold)
	}
	return scenario{name: name, about: about, fits: isLock, run: func(ctx context.Context, t *trial) (run, error) {
		var r run
		extra, violations := map[string]float64{}, 0
		for _, n := range sizes {
			var err error
			if r, err = t.load(ctx, n, load{clients: 1, locks: 1, hold: hold}, t.length/2); err != nil {
				return run{}, err
			}
			violations += r.Violations
			if r.OpsPerSec > 0 {
				extra[handoffKey(n)] = 1e6 / r.OpsPerSec
			}
			if packets, counted := r.Extra[packetsKey]; counted {
				extra[packetsOf(n)] = packets
			}
		}
		r.Violations = violations
		maps.Copy(r.Extra, extra)
		return r, nil
	}}
}

func handoffKey(processes int) string { return fmt.Sprintf("handoff_us_%d", processes) }
func packetsOf(processes int) string  { return fmt.Sprintf("packets_per_handoff_%d", processes) }

func isLock(p peer) bool { return !p.unlocked }

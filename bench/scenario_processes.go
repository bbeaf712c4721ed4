package main

import (
	"context"
	"fmt"
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

// fleetSize is the number of processes that share the lock of scenario fleet.
const fleetSize = 8

var (
	fleet     = passedAround("fleet", 0)
	fleetHold = passedAround("fleet-hold", holdTime)
)

// passedAround returns a scenario of processes that pass one lock around, and hold it for a time.
func passedAround(name string, hold time.Duration) scenario {
	about := "Eight processes with a client each pass one lock around, and two for comparison; each gets half of the time. A client " +
		"that has released asks again as soon as the peer allows, so that a client always waits. ZooKeeper counts the packets."
	if hold > 0 {
		about += fmt.Sprintf(" Each holder keeps the lock for %v.", hold)
	}
	return scenario{name: name, about: about, fits: isLock, run: func(ctx context.Context, t *trial) (run, error) {
		pass := load{clients: 1, locks: 1, hold: hold}
		two, err := t.load(ctx, 2, pass, t.length/2)
		if err != nil {
			return run{}, err
		}
		all, err := t.load(ctx, fleetSize, pass, t.length-t.length/2)
		all.Violations += two.Violations
		for processes, r := range map[int]run{2: two, fleetSize: all} {
			if r.OpsPerSec > 0 {
				all.Extra[handoffKey(processes)] = 1e6 / r.OpsPerSec
			}
			if packets, counted := r.Extra[packetsKey]; counted {
				all.Extra[packetsOf(processes)] = packets
			}
		}
		return all, err
	}}
}

func handoffKey(processes int) string { return fmt.Sprintf("handoff_us_%d", processes) }
func packetsOf(processes int) string  { return fmt.Sprintf("packets_per_handoff_%d", processes) }

func isLock(p peer) bool { return !p.unlocked }

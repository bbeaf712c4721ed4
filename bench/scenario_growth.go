package main

import (
	"context"
	"fmt"
	"maps"
)

// The sizes of scenario growth. The report has the result for mainSize waiters in its table.
var (
	waiterCounts  = []int{mainSize, 1000, 10_000, 100_000}
	newLockCounts = []int{1000, 10_000, 100_000}
)

var growth = scenario{
	name: "growth",
	about: "One lock has 100, 1,000, 10,000 and 100,000 waiters in turn, each for a quarter of the time. The table's line is of 100 waiters. " +
		"The other figures are acquires per second and processor time for each number of waiters. Then 256 clients use 1,000 to 100,000 locks for the first time, once each. The memory is that of each lock when all are idle.",
	fits:   peer.nodeEach,
	costly: true,
	run: func(ctx context.Context, t *trial) (main run, err error) {
		extra, violations := map[string]float64{}, 0
		for _, n := range waiterCounts {
			r, err := t.load(ctx, 1, load{clients: n, locks: 1}, t.length/4)
			if err != nil {
				return main, fmt.Errorf("%d waiters: %w", n, err)
			}
			extra[queueKey(n)] = r.OpsPerSec
			extra[fmt.Sprintf("%s_%d_waiters", clientTimeKey, n)] = r.Extra[clientTimeKey]
			violations += r.Violations
			if n == mainSize {
				main = r
			}
		}
		for _, n := range newLockCounts {
			t.stopWorkers(t.peer) // so that memory is measured in a new process
			r, err := t.special(ctx, "first-use", n)
			if err != nil {
				return main, fmt.Errorf("%d new locks: %w", n, err)
			}
			for key, value := range r {
				extra[fmt.Sprintf("%s_%d_new_locks", key, n)] = value
			}
		}
		maps.Copy(main.Extra, extra)
		main.Violations = violations
		return main, nil
	},
}

func newLocksKey(locks int) string { return fmt.Sprintf("ops_per_sec_%d_new_locks", locks) }

package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
)

// The sizes of scenario scale. The report has the result for mainSize waiters in its table.
var (
	queueSizes = []int{10, 100, 1000, 10_000}
	lockCounts = []int{10, 100, 1000, 10_000, 100_000}
)

const mainSize = 100

var scale = scenario{
	name: "scale",
	about: "One lock has 10, 100, 1000 and 10,000 waiters, up to the number that a peer supports; the line in the table is for 100. " +
		"For this library also 10 to 100,000 locks that up to 256 clients use in turn, memory, and the time that Connect takes. " +
		"Each size gets a quarter of the time.",
	fits:   func(p peer) bool { return p.waiters >= mainSize },
	costly: true,
	run: func(ctx context.Context, t *trial) (run, error) {
		extra := map[string]float64{}
		if t.peer.nodeEach() {
			t.stopWorkers(t.peer) // so that memory is measured in a new process
			memory, err := t.special(ctx, "memory", idleLocks)
			if err != nil {
				return run{}, err
			}
			maps.Copy(extra, memory)
		}
		result, err := t.queues(ctx, extra)
		if err != nil {
			return run{}, err
		}
		if t.peer.isActorlock() {
			err = t.manyLocks(ctx, extra)
		}
		maps.Copy(result.Extra, extra)
		return result, err
	},
}

func (t *trial) queues(ctx context.Context, extra map[string]float64) (main run, err error) {
	violations := 0
	for _, n := range queueSizes {
		if n > t.peer.waiters {
			break
		}
		r, err := t.load(ctx, 1, load{clients: n, locks: 1, ownObjects: true}, t.length/4)
		if err != nil {
			return main, fmt.Errorf("%d waiters: %w", n, err)
		}
		violations += r.Violations
		extra[queueKey(n)] = r.OpsPerSec
		if n == mainSize {
			main = r
		}
	}
	main.Violations = violations
	return main, nil
}

func queueKey(waiters int) string { return fmt.Sprintf("ops_per_sec_%d_waiters", waiters) }

func (t *trial) manyLocks(ctx context.Context, extra map[string]float64) error {
	for _, n := range lockCounts {
		r, err := t.load(ctx, 1, load{clients: min(n, 256), locks: n}, t.length/4)
		if err != nil {
			return fmt.Errorf("%d locks: %w", n, err)
		}
		extra[fmt.Sprintf("ops_per_sec_%d_locks", n)] = r.OpsPerSec
	}
	return nil
}

// special runs one of specials, with a number of locks if it takes one, in a worker of this library.
func (t *trial) special(ctx context.Context, name string, locks int) (map[string]float64, error) {
	workers, err := t.ensureWorkers(ctx, t.peer, 1)
	if err != nil {
		return nil, err
	}
	question := message{"special", map[string]string{"name": name, "path": t.newPath(t.peer.name),
		"locks": strconv.Itoa(locks), "nanos": fmt.Sprint(t.length.Nanoseconds())}}
	answer, err := workers[0].ask(ctx, question, answerLimit)
	if err != nil {
		return nil, err
	}
	return answer.numbers()
}

var futures = scenario{
	name: "futures",
	about: "10,000 futures wait in selects of a goroutine each, for 100 locks that are held. The locks are released, and " +
		"each that is granted one releases it at once. p50 and p99 are from the first release to a grant.",
	fits:   peer.nodeEach,
	costly: true,
	run:    onlySpecial("futures"),
}

var beside = scenario{
	name: "beside",
	about: fmt.Sprintf("One client acquires and releases a mutex in turn, and waits for each, in a process that is busy: %d read-write locks with a local queue "+
		"have %d readers each, and each reader asks again as soon as it has released. p50, p99 and the worst are those of the mutex.", busyLocks, busyReaders),
	fits: func(p peer) bool { return p.mode == "actorlock-local" },
	run:  onlySpecial("beside"),
}

// onlySpecial returns the run function of a scenario that is one special.
func onlySpecial(name string) func(context.Context, *trial) (run, error) {
	return func(ctx context.Context, t *trial) (run, error) {
		numbers, err := t.special(ctx, name, 0)
		if err != nil {
			return run{}, err
		}
		r := run{OpsPerSec: numbers["ops_per_sec"], P50: numbers["p50_us"], P99: numbers["p99_us"], Violations: int(numbers["violations"])}
		for _, key := range []string{"ops_per_sec", "p50_us", "p99_us", "violations"} {
			delete(numbers, key)
		}
		r.Extra = numbers
		return r, nil
	}
}

func (p peer) isActorlock() bool { return p.mode != "" }

// nodeEach reports whether each waiter has a node of its own, which shows that it waits. A local queue has one for all.
func (p peer) nodeEach() bool { return p.mode == "actorlock" }

package simulation

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/actorlock/actorlock/actors/internal/sample"
)

var (
	simHistory = flag.String("sim.history", "", "file for the history of -sim.seed; without it only the history of a failing run is written")
	simSeed    = flag.Uint64("sim.seed", 0, "run only this seed; 0: run many")
	simFrom    = flag.Uint64("sim.from", 1, "first of many seeds; 0: fresh seeds")
	simFor     = flag.Duration("sim.for", time.Duration(sample.Size(sample.Habit(150, 400), 1100))*time.Millisecond, "how long to run many seeds, in each of TestSimulation, TestStreams, TestPartitions and TestKeeper")
	simShrink  = flag.Duration("sim.shrink", 0, "how long to search for a smaller plan that fails like -sim.seed")
	simTime    = flag.Duration("sim.time", 5*time.Minute, "virtual time for which the processes of a seed work")
)

var prioritiesOnce sync.Once

// simulate runs a plan on one processor and without garbage collection, so that goroutines run in
// the same order each time.
func simulate(t *testing.T, p *plan) *simulation {
	t.Helper()
	prioritiesOnce.Do(setThreadPriorities)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cryptotest.SetGlobalRandom(t, p.seed)
	return runPlan(t, p)
}

// TestSimulation runs plans of processes that have ZooKeeper sessions of their own.
func TestSimulation(t *testing.T) { simulateMany(t, newPlan) }

// TestStreams runs plans with lock servers and their clients.
func TestStreams(t *testing.T) { simulateMany(t, newStreamPlan) }

// TestPartitions runs plans with a group of partitions.
func TestPartitions(t *testing.T) { simulateMany(t, newPartitionPlan) }

// TestKeeper runs the plans of TestSimulation on a server that behaves as ClickHouse Keeper.
func TestKeeper(t *testing.T) {
	simulateMany(t, func(seed uint64, length time.Duration) *plan {
		p := newPlan(seed, length)
		p.version = keeperVersion
		return p
	})
}

// simulateMany runs the seeds that the flags say.
func simulateMany(t *testing.T, newPlan func(seed uint64, length time.Duration) *plan) {
	if *simSeed != 0 {
		p := newPlan(*simSeed, *simTime)
		sim := simulate(t, p)
		if sim.failed() && *simShrink > 0 {
			p = shrink(t, p, sim, *simShrink)
			sim = simulate(t, p)
			t.Log(p.asTest())
		}
		report(t, sim)
		if sim.failed() {
			t.Log(rerun(t, p, sim, 3))
		}
		return
	}
	start, virtual, n, grants := time.Now(), time.Duration(0), 0, 0
	for time.Since(start) < *simFor {
		seed := uint64(time.Now().UnixNano())
		if *simFrom != 0 {
			seed = *simFrom + uint64(n)
		}
		if testing.Verbose() { // a panic of any goroutine ends the process before report names the seed
			fmt.Printf("seed %d\n", seed)
		}
		p := newPlan(seed, *simTime)
		sim := simulate(t, p)
		virtual += sim.elapsed
		n++
		grants += sim.grants
		if sim.failed() {
			report(t, sim)
			t.Log(rerun(t, p, sim, 3))
			break
		}
		runtime.GC()
	}
	t.Logf("%d seeds: %.2f simulated hours, %d grants checked, %.0f times real time", n, virtual.Hours(), grants, virtual.Seconds()/time.Since(start).Seconds())
}

//go:embed testdata/seeds
var seeds string

// TestSeeds runs the seeds that have ever failed.
func TestSeeds(t *testing.T) {
	sampled := sample.OneIn(t, 20)
	for line := range strings.Lines(seeds) {
		text, why, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		kind := withSessions
		if len(fields) == 3 {
			kind = planKind(fields[2])
		}
		if err != nil || len(fields) < 2 || len(fields) > 3 || kind != withSessions && kind != withStreams && kind != withPartitions {
			t.Fatalf("testdata/seeds: %q: a line must be a seed, a time, streams or partitions for a seed of TestStreams or TestPartitions, and # what it found", line)
		}
		length, err := time.ParseDuration(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		if !sampled() {
			continue
		}
		t.Run(fields[0], func(t *testing.T) {
			if sim := simulate(t, drawPlan(seed, length, kind)); sim.failed() {
				t.Log(why)
				report(t, sim)
			}
		})
	}
}

func report(t *testing.T, sim *simulation) {
	t.Helper()
	t.Logf("%v: %d requests, %d grants, %d steps, %d lines, hash %016x, %d interruptions", sim.plan, sim.requestCount, sim.grants, sim.steps, len(sim.history), sim.hash, len(sim.interruptedLines))
	for i, v := range sim.violations {
		if i < 10 {
			t.Error(v)
		}
	}
	if sim.failed() {
		test := "Simulation"
		switch {
		case sim.plan.onKeeper():
			test = "Keeper"
		case sim.plan.kind == withPartitions:
			test = "Partitions"
		case sim.plan.kind == withStreams:
			test = "Streams"
		}
		t.Errorf("go test ./actors/simulation -run %s$ -sim.seed %d -sim.time %v", test, sim.plan.seed, sim.plan.drawnLength)
	}
	if !sim.failed() && *simHistory == "" {
		return
	}
	file := *simHistory
	if file == "" {
		file = filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%d.txt", sim.plan.seed))
	}
	if err := sim.save(file); err == nil {
		t.Logf("the history is in %s", file)
	}
}

// TestDeterminism runs a seed several times, on one processor and on two, and compares the
// histories. In an event that takes long Go may change the order of the goroutines: of a run with
// such an event only the lines before it are compared.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	sampled := sample.OneIn(t, 8)
	for seed := range uint64(8) {
		if !sampled() {
			continue
		}
		draw, length, number := newPlan, 15*time.Second, *simSeed+100+seed
		if seed >= 4 {
			draw = newStreamPlan
		}
		if seed == 6 {
			draw, length = newPartitionPlan, time.Minute
		}
		if seed == 7 { // a lock server whose bridge has timers that are due at one moment
			length, number = 30*time.Second, 5
		}
		if seed == 0 { // long enough for faults that come in a part of each minute
			length = 2 * time.Minute
		}
		var longest *simulation // of the runs so far, by its certain lines
		compared := 0
		for run := range 4 {
			runtime.GOMAXPROCS(1 + run%2)
			sim := simulate(t, draw(number, length))
			if sim.failed() {
				report(t, sim)
				return
			}
			if longest != nil {
				difference, lines := compare(longest, sim)
				if difference != "" {
					t.Errorf("seed %d has several histories: %s", seed, difference)
				}
				compared += lines
			}
			if longest == nil || sim.certain() > longest.certain() {
				longest = sim
			}
		}
		t.Logf("seed %d: compared %d of %d lines", seed, compared, 3*len(longest.history))
	}
}

// compare returns the first difference between the certain lines of two runs, and how many of each
// there are. Of two runs without a long event it compares the lengths, too.
func compare(was, is *simulation) (difference string, lines int) {
	lines = min(was.certain(), is.certain())
	if len(was.interruptedLines)+len(is.interruptedLines) == 0 {
		return firstDifference(was.history, is.history), lines
	}
	return firstDifference(was.history[:lines], is.history[:lines]), lines
}

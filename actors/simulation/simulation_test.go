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
	simHistory = flag.String("sim.history", "", "where the history of -sim.seed is written; that of a failure is written anyhow")
	simSeed    = flag.Uint64("sim.seed", 0, "run this seed only; 0 runs many")
	simFrom    = flag.Uint64("sim.from", 1, "run seeds from this one on; 0 runs fresh ones")
	simFor     = flag.Duration("sim.for", 3*time.Second, "how long many seeds are run")
	simShrink  = flag.Duration("sim.shrink", 0, "how long a smaller plan is looked for that fails like -sim.seed")
	simTime    = flag.Duration("sim.time", 5*time.Minute, "how long a seed's processes work, in virtual time")
)

var quietOnce sync.Once

// simulate runs a plan on one processor and without garbage collection, so that goroutines
// run in the same order each time.
func simulate(t *testing.T, p *plan) *world {
	t.Helper()
	quietOnce.Do(quieten)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cryptotest.SetGlobalRandom(t, p.seed)
	return run(t, p)
}

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		p := newPlan(*simSeed, *simTime)
		w := simulate(t, p)
		if w.failed() && *simShrink > 0 {
			p = shrink(t, p, w, *simShrink)
			w = simulate(t, p)
			t.Log(p.asTest())
		}
		report(t, w)
		if w.failed() {
			t.Log(repeats(t, p, w, 3))
		}
		return
	}
	start, virtual, n, grants := time.Now(), time.Duration(0), 0, 0
	for time.Since(start) < *simFor {
		seed := uint64(time.Now().UnixNano())
		if *simFrom != 0 {
			seed = *simFrom + uint64(n)
		}
		p := newPlan(seed, *simTime)
		w := simulate(t, p)
		virtual += w.elapsed
		n++
		grants += w.grants
		if w.failed() {
			report(t, w)
			t.Log(repeats(t, p, w, 3))
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
	sampled := sample.OneIn(t, 10)
	for line := range strings.Lines(seeds) {
		text, why, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || len(fields) != 2 {
			t.Fatalf("testdata/seeds: %q: a line is a seed and a time, and # why", line)
		}
		length, err := time.ParseDuration(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		if !sampled() {
			continue
		}
		t.Run(fields[0], func(t *testing.T) {
			if w := simulate(t, newPlan(seed, length)); w.failed() {
				t.Log(why)
				report(t, w)
			}
		})
	}
}

func report(t *testing.T, w *world) {
	t.Helper()
	t.Logf("%v: %d requests, %d grants, %d steps, %d lines, hash %016x, %d interruptions", w.plan, w.asked, w.grants, w.steps, len(w.history), w.sum, len(w.interrupted))
	for i, v := range w.violations {
		if i < 10 {
			t.Error(v)
		}
	}
	if w.failed() {
		t.Errorf("go test ./actors/simulation -run Simulation -sim.seed %d -sim.time %v", w.plan.seed, w.plan.drawn)
	}
	if !w.failed() && *simHistory == "" {
		return
	}
	file := *simHistory
	if file == "" {
		file = filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%d.txt", w.plan.seed))
	}
	if err := w.save(file); err == nil {
		t.Logf("the history is in %s", file)
	}
}

// TestDeterminism runs a seed several times, on one processor and on two. Only histories of runs
// count in which no event took so long that Go may have had other goroutines run first.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	sampled := sample.OneIn(t, 4)
	for seed := range uint64(4) {
		if !sampled() {
			continue
		}
		length := 15 * time.Second
		if seed == 0 { // what comes once a minute draws its time as well
			length = 2 * time.Minute
		}
		sums, runs := map[uint64]int{}, 0
		for try := 0; try < 24 && runs < 4; try++ {
			runtime.GOMAXPROCS(1 + try%2)
			w := simulate(t, newPlan(*simSeed+100+seed, length))
			if w.failed() {
				report(t, w)
				return
			}
			if len(w.interrupted) == 0 {
				runs++
				sums[w.sum]++
			}
		}
		t.Logf("seed %d: %d runs, %d histories", seed, runs, len(sums))
		if len(sums) > 1 {
			t.Errorf("one seed has several histories: %v", sums)
		}
	}
}

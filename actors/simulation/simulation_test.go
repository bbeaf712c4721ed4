package simulation

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"time"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed; 0 runs fresh ones")
	simFor   = flag.Duration("sim.for", 3*time.Second, "how long fresh seeds are run")
	simKnown = flag.Bool("sim.known", true, "tolerate the defects that are known")
	simTime  = flag.Duration("sim.time", 5*time.Minute, "how long a seed's processes work, in virtual time")
)

// simulate runs a plan on one processor and without garbage collection, so that goroutines
// run in the same order each time.
func simulate(t *testing.T, p *plan) *world {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cryptotest.SetGlobalRandom(t, p.seed)
	return run(t, p)
}

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		w := simulate(t, newPlan(*simSeed, *simTime))
		report(t, w)
		return
	}
	start, virtual, n, grants := time.Now(), time.Duration(0), 0, 0
	for time.Since(start) < *simFor {
		p := newPlan(uint64(time.Now().UnixNano()), *simTime)
		w := simulate(t, p)
		virtual += w.elapsed
		n++
		grants += w.grants
		if w.failed() {
			report(t, w)
			return
		}
		runtime.GC()
	}
	t.Logf("%d seeds, %v, %d grants, %.0f times real time", n, virtual, grants, virtual.Seconds()/time.Since(start).Seconds())
}

func report(t *testing.T, w *world) {
	t.Helper()
	t.Logf("%v: %d requests, %d grants, %d steps, %d lines, hash %016x, %d interruptions", w.plan, w.asked, w.grants, w.steps, len(w.history), w.sum, w.interrupted)
	for i, v := range w.violations {
		if i < 10 {
			t.Error(v)
		}
	}
	if w.failed() {
		t.Errorf("go test ./actors/simulation -run Simulation -sim.seed %d -sim.time %v", w.plan.seed, *simTime)
	}
	if file := os.Getenv("SIM_HISTORY"); file != "" {
		os.WriteFile(file, []byte(w.text()), 0o644)
	}
}

// TestDeterminism runs a seed several times, on one processor and on two. Only histories of runs
// count in which no event took so long that Go may have had other goroutines run first.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(4) {
		sums, runs := map[uint64]int{}, 0
		for try := 0; try < 30 && runs < 4; try++ {
			runtime.GOMAXPROCS(1 + try%2)
			w := simulate(t, newPlan(*simSeed+100+seed, 15*time.Second))
			if w.failed() {
				report(t, w)
				return
			}
			if w.interrupted == 0 {
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

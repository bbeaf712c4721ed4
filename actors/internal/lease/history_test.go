package lease

import (
	_ "embed"
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	leaseFor  = flag.Duration("lease.for", time.Second, "how long to run random histories")
	leaseFrom = flag.Uint64("lease.from", 1, "first seed of the random histories; 0: fresh seeds")
	leaseSeed = flag.Uint64("lease.seed", 0, "run only this seed, and show its history; 0: run many")
)

// settings are those of the histories. The margin is at least syncLimit and a half ticks, and the
// round trips. The last setting is that of ZooKeeper's defaults.
var settings = []setting{
	{timeout: 20 * time.Second, margin: 4 * time.Second, limit: 20 * time.Second, ping: 20 * time.Second / 6, renew: 3 * time.Second, tick: time.Second, syncLimit: 2},
	{timeout: 20 * time.Second, margin: 4 * time.Second, limit: 10 * time.Second, ping: time.Second, renew: 2 * time.Second, tick: time.Second, syncLimit: 2},
	{timeout: 30 * time.Second, margin: 12 * time.Second, limit: 30 * time.Second, ping: time.Second, renew: 4 * time.Second, tick: 2 * time.Second, syncLimit: 5},
}

func newWorld(seed uint64, weak weakness, tracing bool) *world {
	w := &world{weak: weak, tracing: tracing, random: rand.New(rand.NewPCG(seed, 1))}
	w.setting = settings[w.random.IntN(len(settings))]
	w.toServer = &oneWay{w: w, typical: 20 * time.Millisecond, large: 10 * time.Second}
	w.toClient = &oneWay{w: w, typical: 20 * time.Millisecond, large: 10 * time.Second}
	w.leader = newLeader(w)
	w.server = newLeaseServer(w)
	w.client = newLeaseClient(w)
	return w
}

// runHistory runs the history of a seed: faults, and at last one after which the rival must get the
// lock.
func runHistory(seed uint64, weak weakness, tracing bool) *world {
	w := newWorld(seed, weak, tracing)
	n := w.random.IntN(7)
	w.delays = n > 1 && w.chance(0.5)
	w.planFaults(n)
	w.run(faultsEnd)
	w.delays = false
	w.toServer.cutUntil = min(w.toServer.cutUntil, w.now)
	w.toClient.cutUntil = min(w.toClient.cutUntil, w.now)
	w.in(w.seconds(1, 10), w.lastFault)
	w.run(faultsEnd + w.bound() + 11*time.Second)
	return w
}

// report fails the test if a history has a violation.
func report(t *testing.T, seed uint64, w *world) {
	t.Helper()
	if w.violated == "" {
		return
	}
	t.Errorf("seed %d: %s\nfaults:\n\t%s", seed, w.violated, strings.Join(w.faults, "\n\t"))
	t.Errorf("go test ./actors/internal/lease -run TestHistories -lease.seed %d", seed)
}

func TestHistories(t *testing.T) {
	if *leaseSeed != 0 {
		w := runHistory(*leaseSeed, weakness{}, true)
		t.Log("\n" + strings.Join(w.trace, "\n"))
		report(t, *leaseSeed, w)
		return
	}
	seed := *leaseFrom
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	start, histories, grants, steps := time.Now(), 0, 0, 0
	for ; time.Since(start) < *leaseFor && !t.Failed(); seed++ {
		w := runHistory(seed, weakness{}, false)
		histories++
		grants += w.grants
		steps += w.steps
		report(t, seed, w)
	}
	t.Logf("%d histories, %d grants, %.1f million steps", histories, grants, float64(steps)/1e6)
}

// seedsThatFailed lists seeds that have ever failed, with the fault that they found: so far only
// planted ones.
//
//go:embed testdata/seeds
var seedsThatFailed string

func TestSeeds(t *testing.T) {
	for line := range strings.Lines(seedsThatFailed) {
		text, _, _ := strings.Cut(line, "#")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %q: a line must be a seed and # what it found", line)
		}
		report(t, seed, runHistory(seed, weakness{}, false))
	}
}

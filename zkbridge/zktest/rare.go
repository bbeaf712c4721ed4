package zktest

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// Exhaustive reports whether the environment variable ACTORLOCK_EXHAUSTIVE is 1, as in .ci/run, or
// race, as in the nightly run. Tests then do all of their work, and keep the machine busy.
func Exhaustive() bool { return slices.Contains([]string{"1", "race"}, os.Getenv(envAll)) }

// OneRunIn skips the test except in one run of n, at random: a test that starts several processes
// costs seconds of processor time, too much for each run by habit. The test always runs with
// ACTORLOCK_EXHAUSTIVE=1, and with -run on the command line.
func OneRunIn(t testing.TB, n int) {
	t.Helper()
	if !Exhaustive() {
		OneRunInAlways(t, n)
	}
}

// OneRunInAlways is OneRunIn also with ACTORLOCK_EXHAUSTIVE=1: for tests that have a step of .ci/run
// to themselves, which selects them by -run.
func OneRunInAlways(t testing.TB, n int) {
	t.Helper()
	if flag.Lookup("test.run").Value.String() == "" && rand.IntN(n) != 0 {
		t.Skipf("zktest: runs in one run of %d; with -run in all", n)
	}
}

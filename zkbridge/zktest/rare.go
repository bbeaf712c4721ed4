package zktest

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
)

// Exhaustive reports whether the environment variable ACTORLOCK_EXHAUSTIVE is 1: tests then do all of their work, as
// .ci/run has them do, on a machine that they keep busy.
func Exhaustive() bool { return os.Getenv(envAll) == "1" }

// OneRunIn skips the test but for one run in n, drawn by lot: a test that starts several processes costs seconds of
// processor time, more than it is worth to each run by habit. The test always runs with ACTORLOCK_EXHAUSTIVE=1, and where
// the command line selects tests by -run.
func OneRunIn(t testing.TB, n int) {
	t.Helper()
	if Exhaustive() || flag.Lookup("test.run").Value.String() != "" || rand.IntN(n) == 0 {
		return
	}
	t.Skipf("zktest: runs in one run of %d; with %s=1 in all", n, envAll)
}

// Package sample decides how much of their work the long tests do. A run by habit does a sample of
// it, and each run another one, so that such runs add up; ACTORLOCK_EXHAUSTIVE=1, which .ci/run
// sets, has all of it done.
package sample

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// exhaustive is as zktest.Exhaustive, whose package would link servers to the tests of pure
// functions.
func exhaustive() bool { return os.Getenv("ACTORLOCK_EXHAUSTIVE") == "1" }

// Size returns all in an exhaustive run, and few otherwise.
func Size(few, all int) int {
	if exhaustive() {
		return all
	}
	return few
}

// OneIn returns a function that a test calls once for each of its cases, from one goroutine. The
// function reports whether the test is to run that case: each case of an exhaustive run, and
// otherwise every nth case from a random one of the first n on. The test logs which. Cases must
// have names, for "ACTORLOCK_EXHAUSTIVE=1 go test -run NAME" to run a failed one again.
func OneIn(t testing.TB, n int) (next func() bool) {
	if exhaustive() {
		return func() bool { return true }
	}
	return OneInAlways(t, n)
}

// OneInAlways is OneIn also in an exhaustive run.
func OneInAlways(t testing.TB, n int) (next func() bool) {
	first, i := rand.IntN(n), 0
	t.Logf("runs one case in %d, from case %d on; with ACTORLOCK_EXHAUSTIVE=1 all", n, first+1)
	return func() bool {
		i++
		return (i-1)%n == first
	}
}

// Histories sets how many random histories each check of package rapid draws, unless the command
// line says so. A TestMain calls it first. Each run draws other histories, and rapid prints the
// seed of a history that fails.
func Histories(few, all int) {
	flag.Set("rapid.checks", strconv.Itoa(Size(few, all))) // TestMain runs before the command line is parsed
}

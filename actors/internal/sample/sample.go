// Package sample decides how much of their work the long tests do. A run by habit does a sample of
// it, and each run another one, so that such runs add up; ACTORLOCK_EXHAUSTIVE=1, which .ci/run
// sets, has all of it done. Under the race detector these tests are up to fifty times as slow. So
// .ci/run does a sample with it and all without it, and the nightly run sets
// ACTORLOCK_EXHAUSTIVE=race, which has all of it done under the race detector, too.
package sample

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// exhaustive reports whether all work is to be done. It does not use zktest, which would link
// servers to the tests of pure functions.
func exhaustive() bool {
	all := os.Getenv("ACTORLOCK_EXHAUSTIVE")
	return all == "race" || all == "1" && !raceDetector
}

// Size returns all in an exhaustive run, and few otherwise.
func Size(few, all int) int {
	if exhaustive() {
		return all
	}
	return few
}

// byHabit reports whether ACTORLOCK_EXHAUSTIVE is not set.
func byHabit() bool { return os.Getenv("ACTORLOCK_EXHAUSTIVE") == "" }

// Habit returns few in a run by habit, and all in one of .ci/run, also under the race detector: for a
// test that the race detector does not make slow.
func Habit(few, all int) int {
	if byHabit() {
		return few
	}
	return all
}

// HabitOneIn is OneIn in a run by habit. Others run each case, also under the race detector.
func HabitOneIn(t testing.TB, n int) (next func() bool) {
	if byHabit() {
		return everyNth(t, n)
	}
	return func() bool { return true }
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

// OneInAlways is OneIn also in an exhaustive run. Under the race detector it has a quarter of the
// cases.
func OneInAlways(t testing.TB, n int) (next func() bool) {
	if raceDetector && !exhaustive() {
		n *= 4
	}
	return everyNth(t, n)
}

func everyNth(t testing.TB, n int) (next func() bool) {
	first, i := rand.IntN(n), 0
	t.Logf("runs one case in %d, from case %d on; with ACTORLOCK_EXHAUSTIVE=1 all", n, first+1)
	return func() bool {
		i++
		return (i-1)%n == first
	}
}

// OneRaceRunIn skips the test under the race detector except in one run of n, at random: a test that
// takes many seconds there, and that a run by habit does without it. The test always runs with
// ACTORLOCK_EXHAUSTIVE=race, and with -run on the command line.
func OneRaceRunIn(t testing.TB, n int) {
	t.Helper()
	if raceDetector && !exhaustive() && flag.Lookup("test.run").Value.String() == "" && rand.IntN(n) != 0 {
		t.Skipf("runs in one run of %d under the race detector; with -run in all", n)
	}
}

// Histories sets how many random histories each check of package rapid draws, unless the command
// line says so: all, few under the race detector in .ci/run, and half of few in a run by habit. A
// TestMain calls it first. Each run draws other histories, and rapid prints the seed of a history
// that fails.
func Histories(few, all int) {
	flag.Set("rapid.checks", strconv.Itoa(Size(Habit(few/2, few), all))) // TestMain runs before the command line is parsed
}

package sample

import "testing"

// casesRun returns which of 30 cases a test runs that asks next.
func casesRun(next func() bool) (run []int) {
	for i := range 30 {
		if next() {
			run = append(run, i)
		}
	}
	return run
}

// A run by habit does every nth case, and enough of such runs do all.
func TestOneIn(t *testing.T) {
	t.Setenv("ACTORLOCK_EXHAUSTIVE", "")
	done := map[int]bool{}
	for range 1000 { // all of them miss one case with a probability of 1e-44
		run := casesRun(everyNth(t, 10))
		if len(run) != 3 || run[1] != run[0]+10 || run[2] != run[0]+20 {
			t.Fatalf("cases %v are not every tenth", run)
		}
		for _, i := range run {
			done[i] = true
		}
	}
	if len(done) != 30 {
		t.Errorf("a thousand runs have run %d of 30 cases", len(done))
	}
}

// What is smaller by habit is whole in each run of .ci/run.
func TestHabit(t *testing.T) {
	for exhaustive, want := range map[string]int{"": 3, "1": 30, "race": 30} {
		t.Setenv("ACTORLOCK_EXHAUSTIVE", exhaustive)
		if n := Habit(3, 30); n != want {
			t.Errorf("%q: size %d, not %d", exhaustive, n, want)
		}
		if run := casesRun(HabitOneIn(t, 10)); len(run) != want {
			t.Errorf("%q: the cases %v of 30, not %d", exhaustive, run, want)
		}
	}
}

func TestExhaustive(t *testing.T) {
	t.Setenv("ACTORLOCK_EXHAUSTIVE", "1")
	if all := Size(1, 2) == 2; all == raceDetector {
		t.Errorf("all is done: %v; the race detector is on: %v", all, raceDetector)
	}
	if run := casesRun(OneIn(t, 10)); len(run) > 3 == raceDetector {
		t.Errorf("%d cases of 30 are run; the race detector is on: %v", len(run), raceDetector)
	}
	t.Setenv("ACTORLOCK_EXHAUSTIVE", "race")
	if run := casesRun(OneIn(t, 10)); len(run) != 30 {
		t.Errorf("an exhaustive run has run the cases %v of 30", run)
	}
	if n := Size(1, 2); n != 2 {
		t.Errorf("size %d, not 2", n)
	}
}

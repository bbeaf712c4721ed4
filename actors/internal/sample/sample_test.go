package sample

import "testing"

func cases(t *testing.T, n int) (taken []int) {
	next := OneIn(t, n)
	for i := range 30 {
		if next() {
			taken = append(taken, i)
		}
	}
	return taken
}

// By habit a test runs every nth case, and over enough runs all of them.
func TestOneIn(t *testing.T) {
	t.Setenv("ACTORLOCK_EXHAUSTIVE", "")
	seen := map[int]bool{}
	for range 1000 { // a case is missed by all with a probability of 1e-44
		taken := cases(t, 10)
		if len(taken) != 3 || taken[1] != taken[0]+10 || taken[2] != taken[0]+20 {
			t.Fatalf("cases %v are not every tenth", taken)
		}
		for _, i := range taken {
			seen[i] = true
		}
	}
	if len(seen) != 30 {
		t.Errorf("a thousand runs have run %d of 30 cases", len(seen))
	}
}

func TestExhaustive(t *testing.T) {
	t.Setenv("ACTORLOCK_EXHAUSTIVE", "1")
	if taken := cases(t, 10); len(taken) != 30 {
		t.Errorf("an exhaustive run has run the cases %v of 30", taken)
	}
	if n := Size(1, 2); n != 2 {
		t.Errorf("size %d, not 2", n)
	}
}

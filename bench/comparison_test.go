package main

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInterval(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(100-i))
	}
	for _, c := range []struct {
		n           int
		probability float64
		low, high   float64
	}{{0, 0.95, 0, 0}, {1, 0.95, 100, 100}, {5, 0.95, 96, 100}, {8, 0.99, 93, 100}, {9, 0.95, 93, 99}, {100, 0.95, 40, 61}} { // from tables
		if low, high := interval(values[:c.n], c.probability); low != c.low || high != c.high {
			t.Errorf("of %d values: %v to %v, want %v to %v", c.n, low, high, c.low, c.high)
		}
	}
	if low, high := interval(slices.Repeat(values, 50), 0.99); low < 48 || high > 53 {
		t.Errorf("of 5000 values: %v to %v", low, high)
	}
}

// compareRounds compares rounds of a machine that has half its speed at the end, and other work at times. New takes a time more
// for each operation.
func compareRounds(seed uint64, rounds int, more float64) []compared {
	random := rand.New(rand.NewPCG(seed, 0))
	r := &results{}
	for round := range rounds {
		for _, peer := range []string{oldPeer, newPeer} {
			micros := 400.0
			if peer == newPeer {
				micros += more
			}
			micros *= (1 + float64(round)/float64(rounds)) * (1 + 0.1*random.ExpFloat64())
			r.Runs = append(r.Runs, run{Scenario: "uncontended", Peer: peer, Round: round + 1, OpsPerSec: 1e6 / micros, P50: micros,
				Extra: map[string]float64{packetsKey: 6}})
		}
	}
	return r.summarize().compare()
}

func TestComparison(t *testing.T) {
	for _, c := range []struct {
		more float64
		want map[string][]string // verdicts that are right, by figure
	}{
		{0, map[string][]string{"ops": {"equal", "not sure"}, "p50": {"equal", "not sure"}, packetsKey: {"equal"}}},
		{1000, map[string][]string{"ops": {"slower"}, "p50": {"slower"}, packetsKey: {"equal"}}},
		{-100, map[string][]string{"ops": {"faster"}, "p50": {"faster"}, packetsKey: {"equal"}}},
	} {
		for seed := range uint64(20) {
			list := compareRounds(seed, 40, c.more)
			if len(list) != len(c.want) {
				t.Fatalf("compared are %v", list)
			}
			for _, got := range list {
				if !slices.Contains(c.want[got.Figure], got.Verdict) {
					t.Errorf("with %v us more new is %s in %+v", c.more, got.Verdict, got)
				}
				if got.Figure == "p50" && (got.OldTrend < 1.2 || got.Trend < 0.8 || got.Trend > 1.2) {
					t.Errorf("the trends are wrong in %+v", got)
				}
			}
		}
	}
	if got := compareRounds(1, minComparedRounds-1, 0)[0].Verdict; got != "not sure" {
		t.Errorf("after few rounds new is %s", got)
	}
}

// Other peers may be measured beside the two commits, which are then compared with them, too.
func TestPeersBeside(t *testing.T) {
	requireRepository(t)
	o, err := parse(strings.Fields("-compare HEAD -scenarios hot64 -peers raw,actorlock"), io.Discard)
	if err != nil || accepted(o.peers) != "actorlock-old, actorlock-new, raw" {
		t.Fatalf("%v, %v", o, err)
	}
	r := &results{}
	for round := range 8 {
		for peer, perSecond := range map[string]float64{oldPeer: 300, newPeer: 330, "raw": 100} {
			r.Runs = append(r.Runs, run{Scenario: "hot64", Peer: peer, Round: round + 1, OpsPerSec: perSecond})
		}
	}
	if text, want := renderComparison(r), "| hot64 | ops | raw | 3.00 | 3.30 |"; !strings.Contains(text, want) {
		t.Errorf("%q is not in %s", want, text)
	}
}

func TestVerdictOn(t *testing.T) {
	for _, c := range []struct {
		key       string
		low, high float64
		want      string
	}{
		{"ops_per_sec_10_locks", 1.1, 1.2, "faster"}, {"handoff_us_8", 1.1, 1.2, "slower"}, {clientTimeKey, 0.8, 0.9, "faster"},
		{packetsKey, 0.8, 0.9, "less"}, {"bytes_per_waiter", 1.01, 1.2, "more"}, {"ops", 0.98, 1.02, "equal"}, {"ops", 0.9, 1.02, "not sure"},
	} {
		if got := verdictOn(c.key, c.low, c.high); got != c.want {
			t.Errorf("%s of %v to %v is %s, want %s", c.key, c.low, c.high, got, c.want)
		}
	}
}

func TestCommitsIn(t *testing.T) {
	requireRepository(t)
	for text, want := range map[string][2]string{"HEAD": {"HEAD", ""}, "HEAD..": {"HEAD", ""}, "HEAD..HEAD": {"HEAD", "HEAD"}} {
		if old, new, err := commitsIn(text); old != want[0] || new != want[1] || err != nil {
			t.Errorf("%s is %q and %q, %v", text, old, new, err)
		}
	}
	for args, want := range map[string]string{
		"-compare=":                             `-compare "": it must be OLD..NEW`,
		"-compare nothing":                      `no commit "nothing"`,
		"-compare HEAD..--all":                  `no commit "--all"`,
		"-compare HEAD -peers raw":              "-peers raw: with -compare it must be one of actorlock, actorlock-local",
		"-compare HEAD -peers all":              "with -compare it must be one of actorlock, actorlock-local, and may have others beside it",
		"-compare HEAD -rounds 7":               "-rounds 7: with -compare it must be at least 8",
		"-compare HEAD -scenarios beside":       "-peers actorlock: none of them can be used in -scenarios beside",
		"-compare HEAD -scenarios fleet,hot640": `"hot640"`,
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// A commit has the library of its day, and the bench of this tree.
func TestCheckOut(t *testing.T) {
	requireRepository(t)
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "old")
	if err := checkOut(root, "HEAD", dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"bench/comparison_test.go", "zkbridge/zktest/jars/jars.go"} {
		want, err := os.ReadFile(filepath.Join(root, file))
		got, err2 := os.ReadFile(filepath.Join(dir, file))
		if err != nil || err2 != nil || string(got) != string(want) {
			t.Errorf("%s differs: %v, %v", file, err, err2)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "actors", "doc.go")); err != nil {
		t.Error(err)
	}
}

func requireRepository(t *testing.T) {
	t.Helper()
	if _, err := git("rev-parse", "HEAD"); err != nil {
		t.Skip("this is no git repository")
	}
}

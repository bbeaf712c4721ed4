//go:build !race

package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Under the race detector Go's scheduler chooses at random, so no history is like another.

// A part of a plan fails and writes its history, and the replay of that fails in the same way. The
// checker, which takes the third grant for wrong, stands for a defect.
func TestReplayOfAFailure(t *testing.T) {
	defect := func(w *world) {
		if w.grants >= 3 && !w.failed() {
			w.fail(w.now(), "planted")
		}
	}
	p := newPlan(5, 20*time.Second).with(func(e entry) bool { return e.slot > 0 })
	p.length, p.foreign, p.defect = 15*time.Second, 0, defect
	w := simulate(t, p)
	file := t.TempDir() + "/history"
	if err := w.save(file); err != nil {
		t.Fatal(err)
	}
	r := load(t, file)
	if r.plan.String() != p.String() || r.plan.list() != p.list() {
		t.Errorf("%v is read back as %v", p, r.plan)
	}
	r.plan.defect = defect
	again, quiet := r.replay(t)
	switch {
	case again == nil && (len(w.interrupted) > 0 || quiet == 0):
		t.Skip("the machine is too busy: ", w.interruptions())
	case again == nil:
		t.Fatal("no run was the same")
	}
	if where := parting(w.history, again.history); where != "" || !w.failed() || !slices.Equal(again.violations, w.violations) {
		t.Errorf("the replay finds %v instead of %v; %s", again.violations, w.violations, where)
	}
}

// Another process, as on another host, has the same history: nothing in it names the process.
func TestSameInAnotherProcess(t *testing.T) {
	p := newPlan(101, 5*time.Second) // with an election, and owners that have names
	w := simulate(t, p)
	var last string
	for range 5 {
		child := exec.Command(os.Args[0], "-test.run=^TestSimulation$", "-test.v", fmt.Sprint("-sim.seed=", p.seed), fmt.Sprint("-sim.time=", p.drawn))
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if last = string(out); strings.Contains(last, fmt.Sprintf("hash %016x", w.sum)) {
			return
		}
	}
	t.Errorf("hash %016x here, and there: %s", w.sum, last)
}

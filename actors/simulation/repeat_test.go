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

// Under the race detector Go's scheduler chooses at random, so no two histories are the same.

// A part of a plan fails, and its history is saved. The replay must fail in the same way.
func TestReplayOfAFailure(t *testing.T) {
	p := newPlan(5, 20*time.Second).filter(func(e entry) bool { return e.slot > 0 })
	p.length, p.foreignClients, p.defect = 15*time.Second, 0, failAtThirdGrant
	sim := simulate(t, p)
	file := t.TempDir() + "/history"
	if err := sim.save(file); err != nil {
		t.Fatal(err)
	}
	r := loadHistory(t, file)
	if r.plan.String() != p.String() || r.plan.list() != p.list() {
		t.Errorf("%v is read back as %v", p, r.plan)
	}
	r.plan.defect = failAtThirdGrant
	again, uninterrupted := r.replay(t)
	switch {
	case again == nil && (len(sim.interruptedLines) > 0 || uninterrupted == 0):
		t.Skip("the machine is too busy: ", sim.interruptions())
	case again == nil:
		t.Fatal("no run was the same")
	}
	if where := firstDifference(sim.history, again.history); where != "" || !sim.failed() || !slices.Equal(again.violations, sim.violations) {
		t.Errorf("the replay finds %v instead of %v; %s", again.violations, sim.violations, where)
	}
}

// Another process, perhaps on another host, must have the same history: nothing in a history
// depends on the process.
func TestSameInAnotherProcess(t *testing.T) {
	p := newPlan(101, 5*time.Second) // with an election and named owners
	sim := simulate(t, p)
	var last string
	for range 5 {
		child := exec.Command(os.Args[0], "-test.run=^TestSimulation$", "-test.v", fmt.Sprint("-sim.seed=", p.seed), fmt.Sprint("-sim.time=", p.drawnLength))
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if last = string(out); strings.Contains(last, fmt.Sprintf("hash %016x", sim.hash)) {
			return
		}
	}
	t.Errorf("hash %016x here, and there: %s", sim.hash, last)
}

package simulation

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var simReplay = flag.String("sim.replay", "", "file of a history: run its plan until the history is the same, at most ten times")

// All decisions of the event loop follow from the seed and from the bytes that the processes write.
// Runs of one plan differ only in the order of goroutines within an event. So the plan is all that
// a replay needs. A replay reports whether the history is the same, and otherwise the first line
// that differs.

// header returns the first line of a history's file, from which readHistory makes the plan.
func (p *plan) header(hash uint64) string {
	return fmt.Sprintf("seed %d time %d length %d processes %d servers %d foreign %d election %t kind %s hash %016x entries %s",
		p.seed, p.drawnLength, p.length, p.processes, p.servers, p.foreignClients, p.election, p.kind, hash, p.list())
}

// readHistory returns the plan, the hash and the lines of a history's file.
func readHistory(text string) (p *plan, hash uint64, lines []string, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	part := plan{}
	head, list, _ := strings.Cut(head, " entries ")
	if _, err := fmt.Sscanf(head, "seed %d time %d length %d processes %d servers %d foreign %d election %t kind %s hash %x",
		&part.seed, &part.drawnLength, &part.length, &part.processes, &part.servers, &part.foreignClients, &part.election, &part.kind, &hash); err != nil {
		return nil, 0, nil, fmt.Errorf("line 1, %q, is not the header of a history: %w", head, err)
	}
	lines = strings.Split(rest, "\n")
	if is := hashLines(lines); is != hash {
		return nil, 0, nil, fmt.Errorf("the %d lines after line 1 have the hash %016x instead of %016x: the file was cut off or changed", len(lines), is, hash)
	}
	p = drawPlan(part.seed, part.drawnLength, part.kind).only(list)
	p.length, p.processes, p.servers, p.foreignClients, p.election = part.length, part.processes, part.servers, part.foreignClients, part.election
	return p, hash, lines, nil
}

func hashLines(lines []string) uint64 {
	loop := newEventLoop()
	for _, line := range lines {
		loop.appendLine(line)
	}
	return loop.hash
}

// save writes the plan and the history to a file.
func (sim *simulation) save(file string) error {
	return os.WriteFile(file, []byte(sim.plan.header(sim.hash)+"\n"+sim.text()), 0o644)
}

// firstDifference describes the first line that differs in two histories, or returns "".
func firstDifference(was, is []string) string {
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(was):
			return fmt.Sprintf("line %d is more than there was: %s", i+1, is[i])
		case i >= len(is):
			return fmt.Sprintf("line %d is missing: %s", i+1, was[i])
		case was[i] != is[i]:
			return fmt.Sprintf("line %d was %q and is %q", i+1, was[i], is[i])
		}
	}
	return ""
}

// rerun runs a plan again several times, and describes how often the history is the same.
func rerun(t *testing.T, p *plan, sim *simulation, times int) string {
	t.Helper()
	same, difference := 0, ""
	for range times {
		again := simulate(t, p)
		if again.hash == sim.hash {
			same++
		} else if difference == "" {
			difference = fmt.Sprintf("; another time %s (%s)", firstDifference(sim.history, again.history), again.interruptions())
		}
	}
	return fmt.Sprintf("repeats: seed %d, hash %016x, %d of %d times%s", p.seed, sim.hash, same, times, difference)
}

// interruptions describes the events that took so long that Go may have preempted a goroutine.
func (loop *eventLoop) interruptions() string {
	if len(loop.interruptedLines) == 0 {
		return "no event was interrupted"
	}
	first := loop.interruptedLines[:min(len(loop.interruptedLines), 20)]
	return fmt.Sprintf("%d events may have been interrupted, the first of them before lines %v", len(loop.interruptedLines), first)
}

// savedHistory is the content of a history's file.
type savedHistory struct {
	plan  *plan
	hash  uint64
	lines []string
}

func loadHistory(t *testing.T, file string) (r savedHistory) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.plan, r.hash, r.lines, err = readHistory(string(text)); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

// replay runs the plan up to ten times until its history is the saved one, and returns that run, or
// nil. For each other run it logs the first difference and the first violation. uninterrupted is
// the number of other runs in which no event may have been interrupted.
func (r savedHistory) replay(t *testing.T) (same *simulation, uninterrupted int) {
	t.Helper()
	for try := range 10 {
		sim := simulate(t, r.plan)
		if sim.hash == r.hash {
			t.Logf("run %d is the same", try+1)
			return sim, uninterrupted
		}
		if len(sim.interruptedLines) == 0 {
			uninterrupted++
		}
		found := "nothing"
		if sim.failed() {
			found = sim.violations[0]
		}
		t.Logf("run %d parts: %s; %s; it finds %s", try+1, firstDifference(r.lines, sim.history), sim.interruptions(), found)
	}
	return nil, uninterrupted
}

// TestReplay runs the plan of a saved history until a run has that history.
func TestReplay(t *testing.T) {
	if *simReplay == "" {
		t.Skip("needs -sim.replay")
	}
	sim, _ := loadHistory(t, *simReplay).replay(t)
	if sim == nil {
		t.Fatal("no run was the same")
	}
	report(t, sim)
}

// A plan that was written to a file and read again is the same plan.
func TestHistoryReadsBack(t *testing.T) {
	p := newPlan(3, time.Minute).only("1 4 7-9")
	p.length, p.processes, p.servers, p.election = 30*time.Second, 1, 3, true
	text := p.header(hashLines([]string{"one", "two"})) + "\none\ntwo"
	got, _, lines, err := readHistory(text)
	if err != nil || got.String() != p.String() || got.election != p.election || got.list() != p.list() || len(lines) != 2 {
		t.Errorf("got %v %s %q %v, want %v", got, got.list(), lines, err, p)
	}
	loop := newEventLoop()
	loop.record("one gets: %v", errors.Join(errors.New("two"), errors.New("lines")))
	if _, _, lines, err := readHistory(p.header(loop.hash) + "\n" + loop.text()); err != nil || !slices.Equal(lines, loop.history) {
		t.Errorf("%q is read back as %q: %v", loop.history, lines, err)
	}
	for _, bad := range []string{"something\nelse", text + "\nthree", text[:len(text)-4]} {
		if _, _, _, err := readHistory(bad); err == nil {
			t.Errorf("%q is taken for a history", bad)
		}
	}
	if got := firstDifference([]string{"a", "b"}, []string{"a", "c"}); got != `line 2 was "b" and is "c"` {
		t.Error(got)
	}
}

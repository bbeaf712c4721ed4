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

var simReplay = flag.String("sim.replay", "", "a history that a failing run has written: its plan is run until the history is the same, ten times at most")

// The decisions of the driver follow from the seed and from what the processes write, so a history is
// all there is to replay: runs may differ only in the order of goroutines within an event. A rerun says
// whether it was the same, and otherwise in which event the two parted.

// header is the first line of a history's file. It has all that makes the plan.
func (p *plan) header(sum uint64) string {
	return fmt.Sprintf("seed %d time %d length %d processes %d servers %d foreign %d election %t hash %016x entries %s",
		p.seed, p.drawn, p.length, p.processes, p.servers, p.foreign, p.election, sum, p.list())
}

// readHistory returns the plan of a history's file, its hash and its lines.
func readHistory(text string) (p *plan, sum uint64, lines []string, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	part := plan{}
	head, list, _ := strings.Cut(head, " entries ")
	if _, err := fmt.Sscanf(head, "seed %d time %d length %d processes %d servers %d foreign %d election %t hash %x",
		&part.seed, &part.drawn, &part.length, &part.processes, &part.servers, &part.foreign, &part.election, &sum); err != nil {
		return nil, 0, nil, fmt.Errorf("line 1, %q, is not what a failing run writes: %w", head, err)
	}
	lines = strings.Split(rest, "\n")
	if is := hashOf(lines); is != sum {
		return nil, 0, nil, fmt.Errorf("the %d lines behind line 1 have the hash %016x, and were written with %016x: the file was cut off or changed", len(lines), is, sum)
	}
	p = newPlan(part.seed, part.drawn).only(list)
	p.length, p.processes, p.servers, p.foreign, p.election = part.length, part.processes, part.servers, part.foreign, part.election
	return p, sum, lines, nil
}

func hashOf(lines []string) uint64 {
	d := newDriver()
	for _, line := range lines {
		d.add(line)
	}
	return d.sum
}

// save writes the history to a file, with its plan.
func (w *world) save(file string) error {
	return os.WriteFile(file, []byte(w.plan.header(w.sum)+"\n"+w.text()), 0o644)
}

// parting says where two histories part, or "".
func parting(was, is []string) string {
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

// repeats runs a plan again, and says in words whether it has the same history.
func repeats(t *testing.T, p *plan, w *world, times int) string {
	t.Helper()
	same, where := 0, ""
	for range times {
		again := simulate(t, p)
		if again.sum == w.sum {
			same++
		} else if where == "" {
			where = fmt.Sprintf("; another time %s (%s)", parting(w.history, again.history), again.interruptions())
		}
	}
	return fmt.Sprintf("repeats: seed %d, hash %016x, %d of %d times%s", p.seed, w.sum, same, times, where)
}

// interruptions says which events took so long that Go may have had other goroutines run first.
func (d *driver) interruptions() string {
	if len(d.interrupted) == 0 {
		return "no event was interrupted"
	}
	first := d.interrupted[:min(len(d.interrupted), 20)]
	return fmt.Sprintf("%d events may have been interrupted, the first of them before lines %v", len(d.interrupted), first)
}

// recording is what the file of a history has.
type recording struct {
	plan  *plan
	sum   uint64
	lines []string
}

func load(t *testing.T, file string) (r recording) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.plan, r.sum, r.lines, err = readHistory(string(text)); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

// replay runs the plan until its history is the recorded one, and returns that run, or nil if none of
// ten is. It says of each other run where it parts, and what it finds; quiet is how many of these had no
// event that may have been interrupted.
func (r recording) replay(t *testing.T) (same *world, quiet int) {
	t.Helper()
	for try := range 10 {
		w := simulate(t, r.plan)
		if w.sum == r.sum {
			t.Logf("run %d is the same", try+1)
			return w, quiet
		}
		if len(w.interrupted) == 0 {
			quiet++
		}
		found := "nothing"
		if w.failed() {
			found = w.violations[0]
		}
		t.Logf("run %d parts: %s; %s; it finds %s", try+1, parting(r.lines, w.history), w.interruptions(), found)
	}
	return nil, quiet
}

// TestReplay runs the plan of a history again until it has that history.
func TestReplay(t *testing.T) {
	if *simReplay == "" {
		t.Skip("needs -sim.replay")
	}
	w, _ := load(t, *simReplay).replay(t)
	if w == nil {
		t.Fatal("no run was the same")
	}
	report(t, w)
}

// A test reads the plan that a run has written, and it is the same plan.
func TestHistoryReadsBack(t *testing.T) {
	p := newPlan(3, time.Minute).only("1 4 7-9")
	p.length, p.processes, p.servers, p.election = 30*time.Second, 1, 3, true
	text := p.header(hashOf([]string{"one", "two"})) + "\none\ntwo"
	got, _, lines, err := readHistory(text)
	if err != nil || got.String() != p.String() || got.election != p.election || got.list() != p.list() || len(lines) != 2 {
		t.Errorf("got %v %s %q %v, want %v", got, got.list(), lines, err, p)
	}
	d := newDriver()
	d.line("one gets: %v", errors.Join(errors.New("two"), errors.New("lines")))
	if _, _, lines, err := readHistory(p.header(d.sum) + "\n" + d.text()); err != nil || !slices.Equal(lines, d.history) {
		t.Errorf("%q is read back as %q: %v", d.history, lines, err)
	}
	for _, bad := range []string{"something\nelse", text + "\nthree", text[:len(text)-4]} {
		if _, _, _, err := readHistory(bad); err == nil {
			t.Errorf("%q is taken for a history", bad)
		}
	}
	if got := parting([]string{"a", "b"}, []string{"a", "c"}); got != `line 2 was "b" and is "c"` {
		t.Error(got)
	}
}

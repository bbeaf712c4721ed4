package main

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testDriver has locks of this process: real ones, or ones that exclude no client.
type testDriver struct {
	broken bool
	mu     *sync.Mutex
}

func (d testDriver) close() {}

func (d testDriver) lock(context.Context, access) (locker, error) { return d, nil }

func (d testDriver) acquire(context.Context) error {
	if !d.broken {
		d.mu.Lock()
	}
	return nil
}

func (d testDriver) release(context.Context) error {
	if !d.broken {
		d.mu.Unlock()
	}
	return nil
}

// runTogether runs the clients of several processes at one lock, for half a second.
func runTogether(t *testing.T, d driver, clients, processes int, inside func()) (sum tally) {
	t.Helper()
	l := load{clients: clients, locks: 1}
	if processes > 1 {
		l.sections = filepath.Join(t.TempDir(), "sections")
		if err := makeSections(l.sections, 1); err != nil {
			t.Fatal(err)
		}
	}
	tallies := make([]tally, processes)
	var running sync.WaitGroup
	for i := range processes {
		l.process = i
		ready, err := l.prepare(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		defer ready.free()
		ready.inside = inside
		running.Go(func() {
			from := now()
			if tallies[i], err = ready.run(from, from+int64(500*time.Millisecond), false); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for _, one := range tallies {
		sum.merge(one)
	}
	return sum
}

var sharedLoads = map[string]struct{ clients, processes int }{
	"four clients":  {4, 1},
	"two processes": {1, 2},
}

func TestBrokenLockHasViolations(t *testing.T) {
	for name, c := range sharedLoads {
		t.Run(name, func(t *testing.T) {
			var entered atomic.Int32
			second := make(chan struct{})
			awaitSecond := func() { // the first client stays inside until a second one enters
				switch entered.Add(1) {
				case 1:
					<-second
				case 2:
					close(second)
				}
			}
			if sum := runTogether(t, testDriver{broken: true}, c.clients, c.processes, awaitSecond); sum.violations == 0 {
				t.Errorf("two clients were inside together, and were not counted: %+v", sum)
			}
		})
	}
}

func TestGoodLockHasNoViolations(t *testing.T) {
	for name, c := range sharedLoads {
		t.Run(name, func(t *testing.T) {
			sum := runTogether(t, testDriver{mu: new(sync.Mutex)}, c.clients, c.processes, runtime.Gosched)
			if sum.violations != 0 || sum.total == 0 || sum.total < sum.ops {
				t.Errorf("counted %+v", sum)
			}
		})
	}
}

// The time for which a holder keeps the lock does not count as time of a hand-off.
func TestHoldDoesNotCount(t *testing.T) {
	const hold = 20 * time.Millisecond
	ready, err := load{clients: 1, locks: 1, hold: hold}.prepare(t.Context(), testDriver{mu: new(sync.Mutex)})
	if err != nil {
		t.Fatal(err)
	}
	ready.free()
	started := time.Now()
	sum := runTogether(t, testDriver{mu: new(sync.Mutex)}, 1, 2, ready.inside)
	elapsed := time.Since(started)
	var handOffs time.Duration
	for bucket, n := range sum.latencies.counts() {
		handOffs += time.Duration(n) * middleOf(bucket)
	}
	if sum.ops < 2 || handOffs+time.Duration(sum.total)*hold > elapsed*21/20 {
		t.Errorf("%d hand-offs took %v, and %d holders kept the lock for %v each, in %v", sum.ops, handOffs, sum.total, hold, elapsed)
	}
}

// handedOver reports hand-offs between processes, but not those within one.
func TestHandOffs(t *testing.T) {
	var g section
	a1, a2, b := holderID(0, 1), holderID(0, 2), holderID(1, 1)
	for _, c := range []struct {
		me    int64
		other bool
	}{{a1, false}, {a2, false}, {b, true}, {b, false}, {a1, true}} {
		before := now()
		if !g.enter(c.me) {
			t.Fatalf("%d is not alone", c.me)
		}
		since, other := g.handedOver(c.me)
		if other != c.other || other && (since > before || before-since > int64(time.Minute)) {
			t.Errorf("%d got the lock from another process: %v, since %d at %d", c.me, other, since, before)
		}
		g.recordRelease(c.me)
		g.leave(c.me)
	}
}

func TestFailingLockEndsTheRun(t *testing.T) {
	l := load{clients: 3, locks: 3}
	ready, err := l.prepare(t.Context(), failingDriver{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.run(now(), now()+int64(time.Hour), false); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
}

var errBroken = errors.New("broken")

type failingDriver struct{ testDriver }

func (d failingDriver) lock(context.Context, access) (locker, error) { return d, nil }
func (d failingDriver) acquire(context.Context) error                { return errBroken }

// Each lock belongs to one client if there are enough locks, and all locks are used.
func TestLocksAreShared(t *testing.T) {
	for _, l := range []load{{clients: 6, locks: 2}, {clients: 2, locks: 6}, {clients: 2, locks: 5}, {clients: 3, locks: 3}} {
		ready, err := l.prepare(t.Context(), testDriver{})
		if err != nil {
			t.Fatal(err)
		}
		users := map[*section]int{}
		for _, c := range ready.clients {
			for _, p := range c.uses {
				users[p.section]++
			}
		}
		for _, n := range users {
			if want := max(1, l.clients/l.locks); n != want {
				t.Errorf("%d clients and %d locks: %d use one, want %d", l.clients, l.locks, n, want)
			}
		}
		if len(users) != l.locks {
			t.Errorf("%d clients and %d locks: %d are used", l.clients, l.locks, len(users))
		}
	}
}

func TestSectionsByRecipe(t *testing.T) {
	type step struct {
		recipe string
		leave  bool
		want   bool
	}
	in := func(recipe string, want bool) step { return step{recipe, false, want} }
	out := func(recipe string) step { return step{recipe, true, true} }
	for name, steps := range map[string][]step{
		"readers":               {in(readMode, true), in(readMode, true), out(readMode), out(readMode), in(writeMode, true)},
		"writer beside readers": {in(readMode, true), in(writeMode, false)},
		"reader beside writer":  {in(writeMode, true), in(readMode, false)},
		"writers in turn":       {in(writeMode, true), out(writeMode), in(writeMode, true), out(writeMode), in(readMode, true)},
		"permits":               {in(semaphore, true), in(semaphore, true), in(semaphore, true), in(semaphore, false), out(semaphore), out(semaphore), in(semaphore, true)},
	} {
		t.Run(name, func(t *testing.T) {
			var g section
			for i, s := range steps {
				if s.leave {
					g.leaveBy(s.recipe, 7)
				} else if got := g.enterBy(s.recipe, 7); got != s.want {
					t.Errorf("step %d: %v", i, got)
				}
			}
		})
	}
}

// Violations of a read-write lock and of a semaphore are counted, and their clients use both modes.
func TestBrokenRecipesHaveViolations(t *testing.T) {
	for _, recipe := range []string{readWrite, semaphore} {
		l := load{clients: permits + 1, locks: 1, recipe: recipe}
		ready, err := l.prepare(t.Context(), testDriver{broken: true})
		if err != nil {
			t.Fatal(err)
		}
		defer ready.free()
		ready.inside = func() {
			for range 100 {
				runtime.Gosched()
			}
		}
		from := now()
		sum, err := ready.run(from, from+int64(time.Second), false)
		if err != nil || sum.violations == 0 {
			t.Errorf("%s: %+v, %v", recipe, sum, err)
		}
		if recipe == readWrite && sum.violations == sum.total {
			t.Errorf("%+v", sum)
		}
	}
}

package remote_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// station is what a process of a history runs on: a clock, and actors that can be frozen.
type station struct {
	system *host.System
	began  time.Time
	drift  float64      // by how much the clock is faster than virtual time
	slept  atomic.Int64 // for how long the machine was suspended, a time.Duration
}

// maxDrift is how far the clocks of two processes may drift apart: a two-hundredth.
const maxDrift = 1.0 / 200

// newMachine returns a machine whose clock is as slow as may be, as fast as may be, or between, and
// faster than that by ahead.
func (w *world) newMachine(name string, ahead float64) *station {
	m := &station{system: host.NewSystem(nil, w.logger(name)), began: time.Now(), drift: ahead}
	if w.clocks != nil {
		switch w.clocks.IntN(3) {
		case 0:
			m.drift += maxDrift
		case 1:
			m.drift += maxDrift * w.clocks.Float64()
		}
	}
	w.logf("the clock of %s is too fast by %.2f %%", name, 100*m.drift)
	return m
}

// suspendedFor is by how much the clock is ahead of virtual time.
func (m *station) suspendedFor() time.Duration {
	return time.Duration(float64(time.Since(m.began))*m.drift) + time.Duration(m.slept.Load())
}

// freeze keeps the actors of a process from handling messages for a time. Those of timers wait, too.
func (w *world) freeze(m *station, d time.Duration) {
	unfreeze := locktest.FreezeActors(m.system)
	w.undoing.Go(func() {
		<-time.After(d)
		unfreeze()
	})
}

// suspend suspends the machine of a client. Its clock goes on, and its timers stand still: the clock
// jumps by d, and only a moment passes in virtual time. When that is over the client must not believe
// in a grant of a lease that d exceeds.
func (w *world) suspend(c *clientProcess, d, moment time.Duration) {
	w.cutAll(c.name, w.names, moment)
	w.freeze(c.machine, moment)
	<-time.After(time.Millisecond) // what was granted by now was entered
	before := w.ledger.of(c)
	c.machine.slept.Add(int64(d))
	<-time.After(2 * time.Millisecond) // the clock shows a jump a millisecond later
	for _, e := range before {
		if d > leaseTime && e.grant.Err() == nil {
			w.Errorf("%s believes in %v after it was suspended for %v", c.name, e.grant, d)
		}
	}
}

// cutAll cuts a process off from others for a time, in both directions.
func (w *world) cutAll(name string, others []string, d time.Duration) {
	for _, other := range others {
		w.cut(name, other, d)
		w.cut(other, name, d)
	}
}

func (w *world) clientNames() (names []string) {
	for _, c := range w.clients {
		names = append(names, c.name)
	}
	return names
}

// wrongs is what a history has found wrong.
type wrongs struct {
	mu    sync.Mutex
	texts []string
}

// Errorf fails the test, unless the world expects that something is wrong.
func (w *world) Errorf(format string, args ...any) {
	w.Helper()
	if w.wrong == nil {
		w.T.Errorf(format, args...)
		return
	}
	w.wrong.mu.Lock()
	defer w.wrong.mu.Unlock()
	w.wrong.texts = append(w.wrong.texts, fmt.Sprintf(format, args...))
}

// A client that is cut off has stopped believing when another one holds, unless the clock of their
// server is faster than the allowance: the ledger finds that.
func TestDriftOfServer(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	t.Parallel()
	for _, test := range []struct {
		ahead float64
		found bool
	}{{0, false}, {maxDrift, false}, {0.03, true}} {
		zktest.Bubble(t, func(t *testing.T) {
			w := newHistory(t, 1)
			w.ahead, w.names, w.wrong = test.ahead, []string{"server"}, &wrongs{}
			w.startServer("server")
			w.takeOver(w.dialAs("first", 0), w.dialAs("second", 0))
			if found := len(w.wrong.texts) > 0; found != test.found {
				t.Errorf("with a clock too fast by %.1f %% the ledger has found %q", 100*test.ahead, w.wrong.texts)
			}
			for _, c := range w.clients {
				c.locks.Close()
			}
			w.closeServer(w.servers[0])
		})
	}
}

// takeOver has the second client wait for a lock of the first one, which is cut off. The server looks
// at the first one's lease every 5 ms when that is about to end, because requests of it are granted:
// its timers do not go by its clock.
func (w *world) takeOver(first, second *clientProcess) {
	lock := func(c *clientProcess, path string) *actors.Grant {
		g, err := c.locks.Mutex(path).Lock(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		return g
	}
	enter := func(c *clientProcess) {
		g := lock(c, "/locks/0")
		w.ledger.enter(w, believer{path: "/locks/0", node: g.Node(), grant: g, write: true, client: c})
	}
	enter(first)
	var others []*actors.Grant
	for i := range 60 {
		path := fmt.Sprintf("/others/%d", i)
		others = append(others, lock(second, path))
		first.locks.Mutex(path).Acquire(w.Context())
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { enter(second) })
	<-time.After(time.Second)
	w.cutAll(first.name, w.names, time.Hour)
	<-time.After(time.Until(first.locks.Session().Deadline) - 200*time.Millisecond)
	for _, g := range others {
		g.Release()
		<-time.After(5 * time.Millisecond)
	}
	waiting.Wait()
}

package lockqueue

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// All processes close in the middle of a history, and their sessions live on. What the server
// answers then leads to the end of all nodes.
func TestHistoriesOfClose(t *testing.T) {
	for name, rule := range map[string]queue.Rule{"mutex": queue.Mutex(), "semaphore": queue.Semaphore(2), "leases": queue.Leases(2), "request queue": queue.RequestQueue(),
		"read-write lock": queue.ReadWrite(), "delay": delayed()} {
		for _, meddling := range []bool{false, true} {
			if meddling {
				name += " with meddling"
			}
			t.Run(name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					w := newWorld(t, rule, rapid.IntRange(1, 3).Draw(t, "processes"))
					w.meddling = meddling
					t.Repeat(w.actions())
					w.close()
				})
			})
		}
	}
}

// close has all processes close. Then no DelayElapsed comes.
func (w *world) close() {
	w.actions()["expire"](w.t)
	w.markers.delays = nil
	for _, p := range w.procs {
		w.step(p, Close{Reason: requests.Closed})
		if len(p.open) > 0 {
			w.t.Fatalf("process %d: requests are open after Close: %v", p.n, p.open)
		}
	}
	w.drain()
	for _, n := range w.sorted() {
		if n.proc != nil {
			w.t.Fatalf("Close has left %s: %s", n.name, w)
		}
	}
	for _, p := range w.procs {
		if p.state.Ending() {
			w.t.Fatalf("process %d waits for the end of %d nodes: %s", p.n, len(p.state.entries), w)
		}
	}
}

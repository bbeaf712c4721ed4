package lockqueue

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// All processes close in the middle of a history, and their sessions live on. What the server
// answers then leads to the end of all nodes.
func TestHistoriesOfClose(t *testing.T) {
	for name, othersDelete := range map[string]bool{"undisturbed": false, "nodes deleted by others": true} {
		t.Run(name, func(t *testing.T) {
			testHistories(t, oneOfEach, func(t *rapid.T, m *model) {
				m.othersDelete = othersDelete
				t.Repeat(m.actions())
				m.close()
			})
		})
	}
}

// close has all processes close, after which no DelayElapsed comes, and checks that nothing is
// left.
func (m *model) close() {
	m.expireSessions()
	m.heldMarker.delays = nil
	for _, p := range m.processes {
		m.step(p, Close{Reason: requests.Closed})
		if len(p.open) > 0 {
			m.t.Fatalf("process %d: requests are open after Close: %v", p.n, p.open)
		}
	}
	m.drain()
	for _, n := range m.inOrder() {
		if n.process != nil {
			m.t.Fatalf("Close has left %s: %s", n.name, m)
		}
	}
	for _, p := range m.processes {
		if p.state.Ending() {
			m.t.Fatalf("process %d waits for the end of %d nodes: %s", p.n, len(p.state.entries.list), m)
		}
	}
}

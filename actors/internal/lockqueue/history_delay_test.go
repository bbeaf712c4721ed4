package lockqueue

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// heldMarker is the held marker of a lock with a lock-delay, and the delays of contenders.
type heldMarker struct {
	node   string // that it names, or "" while there is no held marker
	delays []runningDelay
	waited map[string]bool // nodes whose contenders have waited for the delay
}

type runningDelay struct {
	process *process
	serial  uint64
	node    string
}

// elapseDelay ends the first delay that runs.
func (m *model) elapseDelay() {
	d := m.heldMarker.delays[0]
	m.heldMarker.delays = m.heldMarker.delays[1:]
	m.heldMarker.waited[d.node] = true
	m.step(d.process, DelayElapsed{Serial: d.serial})
}

// serveHeldMarker executes a transaction on the held marker and answers it. It may be lost before
// or after that.
func (m *model) serveHeldMarker(p *process, f Effect) {
	unknown := Failed{Serial: f.Serial, Reason: requests.OutcomeUnknown}
	outcome := rapid.IntRange(0, 9).Draw(m.t, "outcome")
	if outcome == 0 {
		p.reply(unknown)
		return
	}
	answer := m.executeHeldMarker(f)
	m.catchUp(p)
	if outcome == 1 {
		p.reply(unknown)
		return
	}
	p.reply(answer)
}

func (m *model) executeHeldMarker(f Effect) Transacted {
	marker := &m.heldMarker
	switch {
	case m.nodes[f.Node] == nil:
		return Transacted{Serial: f.Serial, Op: 0}
	case (marker.node != "") == (f.Kind == requests.CreateHeldMarker):
		return Transacted{Serial: f.Serial, Op: 1}
	case f.Kind != requests.CreateHeldMarker && marker.node != f.Node && !marker.waited[f.Node]:
		m.t.Fatalf("the held marker of %s is taken by %s, which has not waited: %s", marker.node, f.Node, m)
	}
	if !m.othersDelete && !m.mayHold(f.Node) {
		m.t.Fatalf("%s, which may not hold, writes the held marker: %s", f.Node, m)
	}
	if f.Kind != requests.DeleteWithHeldMarker {
		m.setHeldMarker(f.Node)
	} else {
		m.setHeldMarker("")
		m.deleteNode(f.Node)
	}
	return Transacted{Serial: f.Serial, Done: true}
}

func TestHistoriesOfADelayedMutex(t *testing.T) {
	testHistories(t, []string{"mutex with delay"}, func(t *rapid.T, m *model) {
		actions := m.actions()
		actions["a delay elapses"] = func(t *rapid.T) {
			if len(m.heldMarker.delays) == 0 {
				t.Skip("no delay")
			}
			m.elapseDelay()
		}
		machinetest.Repeat(t, actions)
		m.finish()
		// The held marker that an unclean end has left goes with the next clean release.
		m.unrelated, m.undeletable, m.answersDeletions = false, false, true // otherwise the numbers may be used up
		m.ids++
		m.processes[0].open[m.ids] = "waiting"
		m.step(m.processes[0], Acquire{ID: m.ids})
		m.finish()
		if m.heldMarker.node != "" {
			t.Fatalf("the held marker of %s is left", m.heldMarker.node)
		}
	})
}

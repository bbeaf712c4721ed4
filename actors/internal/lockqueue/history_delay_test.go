package lockqueue

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// heldMarkers is the part of a world that a rule with a Delay needs.
type heldMarkers struct {
	by     string // the node that the held marker names; empty: there is no held marker
	delays []delaying
	waited map[string]bool // nodes whose contenders have waited for the delay
}

type delaying struct {
	p      *process
	serial uint64
	node   string
}

func (w *world) elapse() {
	d := w.markers.delays[0]
	w.markers.delays = w.markers.delays[1:]
	w.markers.waited[d.node] = true
	w.step(d.p, DelayElapsed{Serial: d.serial})
}

// transact perhaps executes an effect about the held marker, and perhaps answers it.
func (w *world) transact(p *process, f Effect) {
	fate := rapid.IntRange(0, 9).Draw(w.t, "fate")
	if fate == 0 {
		p.reply(Failed{Serial: f.Serial, Reason: requests.OutcomeUnknown})
		return
	}
	e := w.execute(f)
	w.catchUp(p)
	if fate == 1 {
		p.reply(Failed{Serial: f.Serial, Reason: requests.OutcomeUnknown})
		return
	}
	p.reply(e)
}

func (w *world) execute(f Effect) Transacted {
	m := &w.markers
	switch {
	case w.nodes[f.Node] == nil:
		return Transacted{Serial: f.Serial, Op: 0}
	case (m.by != "") == (f.Kind == CreateHeldMarker):
		return Transacted{Serial: f.Serial, Op: 1}
	case f.Kind != CreateHeldMarker && m.by != f.Node && !m.waited[f.Node]:
		w.t.Fatalf("the held marker of %s is taken by %s, which has not waited: %s", m.by, f.Node, w)
	}
	if !w.meddling && !w.holds(f.Node, true) {
		w.t.Fatalf("%s, which may not hold, is about to make the held marker: %s", f.Node, w)
	}
	if f.Kind != DeleteWithHeldMarker {
		w.setHeldMarker(f.Node)
	} else {
		w.setHeldMarker("")
		w.del(f.Node)
	}
	return Transacted{Serial: f.Serial, Done: true}
}

func (w *world) look(p *process, f Effect) {
	data := map[string][]byte{}
	if p.view.markerOf != "" {
		data["the held marker"] = []byte(p.view.markerOf)
	}
	p.reply(Watched{Serial: f.Serial, Data: data})
}

func TestHistoriesOfADelayedMutex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, delayed(), rapid.IntRange(1, 3).Draw(t, "processes"))
		actions := w.actions()
		actions["time passes"] = func(t *rapid.T) {
			if len(w.markers.delays) == 0 {
				t.Skip("no contender waits for that")
			}
			w.elapse()
		}
		machinetest.Repeat(t, actions)
		w.finish()
		// The held marker that an unclean end left goes with the next clean release.
		w.ids++
		w.procs[0].open[w.ids] = "waiting"
		w.step(w.procs[0], Acquire{ID: w.ids})
		w.finish()
		if w.markers.by != "" {
			t.Fatalf("the held marker of %s is left", w.markers.by)
		}
	})
}

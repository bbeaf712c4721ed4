package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// revocations are what holders of a world are asked to release.
type revocations struct {
	everAsked map[string]bool // nodes whose data has said so
	told      map[requests.ID]bool
}

// write changes a node's data: to ask for a release, or back.
func (w *world) write(name string, wish bool) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	w.revocations.everAsked[name] = w.revocations.everAsked[name] || wish
	w.commit(func(p *process) {
		p.view.asked[name] = wish
		p.fire(name, false)
	})
}

// data returns the data of the nodes that f watches.
func (p *process) data(f Effect) map[string][]byte {
	data := map[string][]byte{}
	for _, name := range f.Nodes {
		if f.WithData && p.view.asked[name] {
			data[name] = []byte(queue.RevokeData)
		}
	}
	return data
}

func (w *world) told(p *process, id requests.ID) {
	if w.revocations.told[id] || p.open[id] != "held" || !w.revocations.everAsked[p.nodeOf[id]] {
		w.t.Fatalf("process %d: request %d, %s, is asked to release: %+v", p.n, id, p.open[id], w.revocations)
	}
	w.revocations.told[id] = true
}

// checkTold checks a world at rest: every holder that is asked to release knows it.
func (w *world) checkTold() {
	for _, p := range w.procs {
		for id, s := range p.open {
			if node := p.nodeOf[id]; p.up && s == "held" && w.nodes[node] != nil && w.revocations.everAsked[node] && !w.revocations.told[id] {
				w.t.Fatalf("process %d: request %d does not know that it is to release: %s", p.n, id, w)
			}
		}
	}
}

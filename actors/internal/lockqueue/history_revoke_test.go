package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// wishes are what is asked of holders in a world.
type wishes struct {
	ever map[string]bool // nodes whose data has said so
	told map[requests.ID]bool
}

// write changes a node's data, to that wish or to what it was.
func (w *world) write(name string, wish bool) {
	n := w.nodes[name]
	if n == nil {
		return
	}
	w.wishes.ever[name] = w.wishes.ever[name] || wish
	w.commit(func(p *process) {
		p.view.asked[name] = wish
		p.fire(name, false)
	})
}

// data is that of the nodes that are watched by f.
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
	if w.wishes.told[id] || p.open[id] != "held" || !w.wishes.ever[p.nodeOf[id]] {
		w.t.Fatalf("process %d: request %d, %s, is asked to release: %+v", p.n, id, p.open[id], w.wishes)
	}
	w.wishes.told[id] = true
}

// checkTold is for a world at rest: whoever is wanted to release knows.
func (w *world) checkTold() {
	for _, p := range w.procs {
		for id, s := range p.open {
			if node := p.nodeOf[id]; p.up && s == "held" && w.nodes[node] != nil && w.wishes.ever[node] && !w.wishes.told[id] {
				w.t.Fatalf("process %d: request %d does not know that it is to release: %s", p.n, id, w)
			}
		}
	}
}

package lockqueue

import "slices"

// view is what the server of a process shows: the state of the world after some of its changes. A
// server that follows another is late, but never goes back, and has executed the process's own
// writes before it answers them.
type view struct {
	nodes     map[string]*worldNode
	directory int64
	asked     map[string]bool // nodes whose data asks to release
	markerOf  string
	passed    int // changes that it shows
	timely    int // changes that were made before the last tick
}

// change does to a process's view what a transaction does, and fires the watches on it.
type change func(p *process)

func newView() view {
	return view{nodes: map[string]*worldNode{}, directory: 1, asked: map[string]bool{}}
}

// commit has all servers show a change: now, or some time later if followers lag.
func (w *world) commit(c change) {
	w.changes = append(w.changes, c)
	for _, p := range w.procs {
		if !w.lagging {
			w.catchUp(p)
		}
	}
}

// catchUp has the server of a process show all that has happened. Every write does so, and
// the begin of a session.
func (w *world) catchUp(p *process) { w.advance(p, len(w.changes)) }

func (w *world) advance(p *process, to int) {
	for ; p.view.passed < to; p.view.passed++ {
		w.changes[p.view.passed](p)
	}
}

// put adds a node to the directory.
func (w *world) put(n *worldNode) {
	w.nodes[n.name] = n
	delete(w.ghosts, n.name) // at the end of the numbers a repeated create has the same name
	w.commit(func(p *process) {
		p.view.nodes[n.name] = n
		p.fireDirectory()
	})
}

func (w *world) del(name string) {
	if w.nodes[name] == nil {
		return
	}
	w.zxid++
	delete(w.nodes, name)
	w.commit(func(p *process) {
		delete(p.view.nodes, name)
		p.fireDirectory()
		p.fire(name, true)
	})
}

// setDirectory makes the directory, or deletes it.
func (w *world) setDirectory(czxid int64) {
	w.directory = czxid
	w.commit(func(p *process) {
		p.view.directory = czxid
		p.fireDirectory()
	})
}

func (w *world) setHeldMarker(node string) {
	w.markers.by = node
	w.commit(func(p *process) { p.view.markerOf = node })
}

func (p *process) fire(name string, deleted bool) {
	if p.watches[name] {
		delete(p.watches, name)
		p.events = append(p.events, Wake{Epoch: p.epoch, Node: name, Deleted: deleted})
		p.emitted++
	}
}

func (p *process) fireDirectory() {
	if p.directoryWatched {
		p.directoryWatched = false
		p.events = append(p.events, Wake{Epoch: p.epoch})
		p.emitted++
	}
}

// names returns what a process reads in the directory.
func (w *world) names(p *process) []string {
	if p.view.directory == 0 {
		return nil
	}
	var names []string
	if !w.rule.CountUnknown {
		names = append(names, "unrelated")
	}
	for name := range p.view.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

package lockqueue

import "slices"

// follower is the server to which a process is connected. It has executed the first changes of all.
// It may lag behind, but never goes back, and has executed the process's own writes before it
// answers them.
type follower struct {
	nodes         map[string]*serverNode
	directory     int64
	revokeAsked   map[string]bool  // nodes whose data ask for a release
	writtenAt     map[string]int64 // zxids of the last writes of data
	heldMarker    string           // the node that the held marker names
	applied       int              // number of changes
	changesAtTick int              // number of changes of all at the last tick
}

// change executes a transaction on the follower of a process, and fires the watches.
type change func(p *process)

func newFollower() follower {
	return follower{nodes: map[string]*serverNode{}, directory: 1, revokeAsked: map[string]bool{}, writtenAt: map[string]int64{}}
}

// changedAt returns the zxid of the last change of a node.
func (f *follower) changedAt(name string) int64 {
	return max(f.nodes[name].czxid, f.writtenAt[name])
}

// commit has all followers execute a change: now, or later if they lag.
func (m *model) commit(c change) {
	m.changes = append(m.changes, c)
	for _, p := range m.processes {
		if !m.lagging {
			m.catchUp(p)
		}
	}
}

// catchUp has the follower of a process execute all changes. Each write does so, and the begin of a
// session.
func (m *model) catchUp(p *process) { m.advance(p, len(m.changes)) }

func (m *model) advance(p *process, to int) {
	for ; p.follower.applied < to; p.follower.applied++ {
		m.changes[p.follower.applied](p)
	}
}

func (m *model) insert(n *serverNode) {
	m.nodes[n.name] = n
	delete(m.deleted, n.name) // at the end of the numbers, or in another directory, a repeated create has the same name
	m.commit(func(p *process) {
		p.follower.nodes[n.name] = n
		p.fireDirectoryWatch()
	})
}

func (m *model) deleteNode(name string) {
	if m.nodes[name] == nil {
		return
	}
	m.zxid++
	delete(m.nodes, name)
	m.commit(func(p *process) {
		delete(p.follower.nodes, name)
		p.fireDirectoryWatch()
		p.fireWatch(name, true)
	})
}

// setDirectory creates the directory, writes to it, or deletes it if czxid is 0.
func (m *model) setDirectory(czxid int64) {
	m.directory = czxid
	m.commit(func(p *process) {
		if czxid != p.follower.directory {
			p.fireDirectoryWatch()
		}
		if p.follower.directory = czxid; p.selfWatched {
			p.selfWatched, p.knownDirectory = false, 0
		}
	})
}

// setHeldMarker has the held marker name a node, or deletes it if node is empty.
func (m *model) setHeldMarker(node string) {
	m.heldMarker.node = node
	m.commit(func(p *process) { p.follower.heldMarker = node })
}

func (p *process) fireWatch(name string, deleted bool) {
	if p.watches[name] {
		delete(p.watches, name)
		p.emitWake(name, deleted)
	}
}

func (p *process) emitWake(name string, deleted bool) {
	p.events = append(p.events, Wake{Epoch: p.epoch, Node: name, Deleted: deleted})
	p.emitted++
}

func (p *process) fireDirectoryWatch() {
	if p.directoryWatched {
		p.directoryWatched = false
		p.events = append(p.events, Wake{Epoch: p.epoch})
		p.emitted++
	}
}

// children returns the names that a process reads in the directory.
func (m *model) children(p *process) []string {
	if p.follower.directory == 0 {
		return nil
	}
	var names []string
	if m.unrelated {
		names = append(names, "unrelated") // no contender
	}
	for name := range p.follower.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

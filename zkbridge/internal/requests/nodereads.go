package requests

import (
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// NodeReads are the reads of Watches that are not sent yet. Many that come at one time share two
// messages. The server has less work with them than with a message for each.
type NodeReads struct {
	waiting  []nodeRead
	due      bool // a job is about to send some
	together bool // the answer for several nodes is awaited: one at a time, as nodes may be large
}

// nodeRead is the read of one node of a Watch.
type nodeRead struct {
	watch   *Watch
	node    string
	watcher *watches.Watcher
}

const (
	// fewNodes is the number of nodes up to which two messages for all save nothing.
	fewNodes = 2
	// manyNodes bounds the nodes that share messages.
	manyNodes = 64
)

func (n *NodeReads) add(ep InEpoch, r nodeRead) {
	n.waiting = append(n.waiting, r)
	n.schedule(ep)
}

// schedule has a job send what waits, at the end of the actor's turn: more may come until then.
func (n *NodeReads) schedule(ep InEpoch) {
	if n.due || len(n.waiting) == 0 {
		return
	}
	n.due = true
	ep.Jobs().Reads.Add(func(end func(func())) {
		n.due = false
		switch {
		case len(n.waiting) <= fewNodes:
			n.readOne(ep, n.take(1)[0], end)
		case n.together: // what waits is sent after its answer
			end(func() {})
			return
		default:
			sharing := zkconn.Sharing(len(n.waiting), manyNodes, func(i int) int { return zkconn.OpBytes + len(n.waiting[i].path()) })
			n.readTogether(ep, n.take(sharing), end)
		}
		n.schedule(ep)
	})
}

// take takes the first reads.
func (n *NodeReads) take(count int) []nodeRead {
	first := n.waiting[:count:count]
	if n.waiting = n.waiting[count:]; len(n.waiting) == 0 {
		n.waiting = nil
	}
	return first
}

func (r *nodeRead) path() string { return zkpath.Join(r.watch.msg.GetDirectory(), r.node) }

func (n *NodeReads) readOne(ep InEpoch, r nodeRead, end func(func())) {
	ep.Client().Get(r.path(), true, func(found zkconn.Content, err error) {
		end(func() { r.watch.onNodeRead(ep, r.node, r.watcher, found, err) })
	})
}

func (n *NodeReads) readTogether(ep InEpoch, some []nodeRead, end func(func())) {
	n.together = true
	reads := make([]zkconn.NodeRead, len(some))
	for i := range some {
		reads[i].Path = some[i].path()
		some[i].watcher.SetFirst()
	}
	ep.Client().WatchNodes(reads, func(err error) {
		end(func() {
			n.together = false
			n.schedule(ep)
			for i, r := range some {
				ended := r.watcher.OnReadBehind()
				switch found := reads[i]; {
				case zkconn.IsTransient(err):
					r.watch.onNodeRead(ep, r.node, r.watcher, zkconn.Content{}, err)
				case err != nil, ended && found.Err == nil: // one node may be too large, or the server may not know the messages
					ep.Jobs().Reads.Add(func(end func(func())) { n.readOne(ep, r, end) })
				default:
					r.watch.onNodeRead(ep, r.node, r.watcher, found.Content, found.Err)
				}
			}
		})
	})
}

package recipes

import "github.com/actorlock/actorlock/actors/internal/requests"

// The end of the nodes of requests that were cancelled with await_node.

// AwaitNode implements lock.NodeAwaiter.
func (l *lockActor) AwaitNode(id requests.ID) (await func(then func())) {
	serial := l.queue.state.SerialOf(id)
	return func(then func()) { l.queue.awaitGone(serial, then) }
}

// awaitedNode is the node of a request that has ended, with what is to be called once it is gone.
type awaitedNode struct {
	serial uint64
	then   func()
}

// awaitGone calls a function once the node with a serial, whose request has ended, is deleted or its
// session is lost.
func (d *directory) awaitGone(serial uint64, then func()) {
	if d.state.Leaves(serial) {
		d.awaited = append(d.awaited, awaitedNode{serial, then})
	} else {
		then()
	}
}

// callBehindNodes calls what waits for nodes that are gone.
func (d *directory) callBehindNodes(gone func(awaitedNode) bool) {
	if len(d.awaited) == 0 {
		return
	}
	all := d.awaited
	d.awaited = nil
	for _, n := range all {
		if gone(n) {
			n.then()
		} else {
			d.awaited = append(d.awaited, n)
		}
	}
}

// awaitNoNode calls what waits for nodes, since no answer about them is to come.
func (d *directory) awaitNoNode() { d.callBehindNodes(func(awaitedNode) bool { return true }) }

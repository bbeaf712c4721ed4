package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The end of the nodes of requests that were cancelled with await_node.

// AwaitNode implements lock.NodeAwaiter.
func (l *lockActor) AwaitNode(id requests.ID) (await func(then func())) {
	serial := l.queue.state.SerialOf(id)
	return func(then func()) { l.queue.awaitGone(serial, then) }
}

// awaitGone calls a function once the node with a serial, whose request has ended, is deleted or its
// session is lost.
func (d *directory) awaitGone(serial uint64, then func()) {
	if !d.state.Leaves(serial) {
		then()
		return
	}
	if len(d.awaited) == 0 {
		d.awaited = map[uint64][]func(){}
		d.state.NoteGone(true)
	}
	d.awaited[serial] = append(d.awaited[serial], then)
}

// callBehindNodes calls what waits for nodes that are gone by an event. Most events are about one node of
// thousands that may be awaited: it looks at all of them only at a tick and at a change of the session.
func (d *directory) callBehindNodes(event any) {
	gone := d.state.Gone()
	switch event.(type) {
	case lockqueue.Tick, lockqueue.Session:
		gone = slices.DeleteFunc(slices.Sorted(maps.Keys(d.awaited)), d.state.Leaves)
	}
	for _, serial := range gone {
		d.callBehindNode(serial)
	}
}

func (d *directory) callBehindNode(serial uint64) {
	all := d.awaited[serial]
	if delete(d.awaited, serial); len(d.awaited) == 0 {
		d.state.NoteGone(false)
	}
	for _, then := range all {
		then()
	}
}

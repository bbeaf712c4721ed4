package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// directories holds the directories of one actor: one, or the two of a semaphore. It is a client of
// the bridge, hears of the session by its manager, and has the methods of a lock.Behavior that do
// not depend on the recipe.
type directories struct {
	*lock.Actor
	epoch      uint64     // of the session, in which the nodes live; 0 before the first session
	session    int64      // ZooKeeper's number of the session, for the grants
	lost       bool       // the session of epoch is lost
	cleaningUp bool       // the actor has stopped, and its nodes are not deleted yet
	queue      directory  // of the lock, or a semaphore's request queue
	leases     *directory // of a semaphore; nil for other locks
}

// beginSession tells an actor that is complete the present state of the session, by its SessionChanged.
func (ds *directories) beginSession(changed func(ask.Recipient, *messages.SessionChanged)) {
	if now := ds.SessionAtStart; now != nil {
		changed(nil, now)
		ds.Detail = ""
	}
}

func (ds *directories) bridge() messages.BridgeRef { return ds.Manager.Bridge.Ref() }

func (ds *directories) each(do func(d *directory)) {
	do(&ds.queue)
	if ds.leases != nil {
		do(ds.leases)
	}
}

// idOf returns the id of a question to the bridge. The lowest bit says which directory asks.
func (d *directory) idOf(serial uint64) uint64 {
	id := serial << 1
	if d == d.actor.leases {
		id |= 1
	}
	return id
}

// granted returns a grant by a node of the present session as a message.
func (ds *directories) granted(path, node string, token requests.Token) *messages.Granted {
	return &messages.Granted{Path: path, Node: node, Generation: token.Generation, Czxid: token.Czxid, Step: token.Step,
		SessionId: ds.session, Epoch: ds.epoch}
}

// grantedAlone is granted for a node that no local queue passes on. Its step leaves room for the grants of a
// local queue, whose node may be of the same transaction: see manager/served.go. The locks of every recipe
// do so, because one transaction also has the nodes of a multi-lock's members.
func (ds *directories) grantedAlone(path, node string, token requests.Token) *messages.Granted {
	token.Step <<= localqueue.StepBits
	return ds.granted(path, node, token)
}

// ---- calls of the lock.Actor

// Epoch implements lock.Behavior.
func (ds *directories) Epoch() uint64 {
	if ds.lost {
		return 0
	}
	return ds.epoch
}

// SessionOverdue implements lock.Behavior.
func (ds *directories) SessionOverdue() { ds.sessionLost(ds.epoch) }

// Tick implements lock.Behavior.
func (ds *directories) Tick(quiet bool) {
	ds.each(func(d *directory) {
		if quiet {
			d.state.ReleaseMemory()
		}
		feed(d, lockqueue.Tick{})
	})
}

// Idle implements lock.Behavior.
func (ds *directories) Idle() bool {
	return ds.queue.state.Idle() && (ds.leases == nil || ds.leases.state.Idle())
}

// Close implements lock.Behavior.
func (ds *directories) Close(failed bool) {
	var paths []string
	ds.each(func(d *directory) { paths = append(paths, d.path) })
	ds.bridge().SendUnsubscribe(&messages.Unsubscribe{Directories: paths}, ds.Self)
	ds.each(func(d *directory) { d.close(failed) })
	ds.cleaningUp = !failed && ds.ending() && ds.Manager.StartCleanup(ds.Entry)
}

// ending reports whether nodes are not deleted yet.
func (ds *directories) ending() bool {
	return ds.queue.state.Ending() || ds.leases != nil && ds.leases.state.Ending()
}

// ReceiveAfterStop implements lock.Behavior. The actor deletes its nodes by the bridge's answers,
// also a node whose creation is answered now.
func (ds *directories) ReceiveAfterStop(from ask.Recipient, msg any) {
	if member, is := msg.(acquireMember); is {
		ds.Refuse(from, member.Acquire)
	} else if query, is := msg.(manager.NodesQuery); is { // also behind the deletion of the last node
		query.Reply <- ds.nodePaths()
	} else if ds.cleaningUp {
		messages.DispatchBridgeClient(ds, from, msg, from)
		if !ds.ending() {
			ds.cleaningUp = false
			ds.Manager.CleanedUp(ds.Entry)
		}
	} else if created, ok := msg.(*messages.Created); ok {
		d, serial := ds.of(created.Id)
		d.releaseNode(serial, created.Node, false)
	}
}

// nodePaths returns the paths of the nodes that may exist.
func (ds *directories) nodePaths() (paths []string) {
	ds.each(func(d *directory) {
		for _, node := range d.state.Nodes() {
			paths = append(paths, d.nodePath(node))
		}
	})
	return paths
}

// close has all nodes deleted, and calls what waits for nodes, since no answer about them is to come.
func (d *directory) close(failed bool) {
	stopTimer(d.delay)
	if failed {
		for serial, node := range d.state.Nodes() {
			d.releaseNode(serial, node, false)
		}
	} else {
		feed(d, lockqueue.Close{Reason: requests.Closed})
	}
	for _, serial := range slices.Sorted(maps.Keys(d.awaited)) {
		d.callBehindNode(serial)
	}
}

// noteUndeleted notes the node of a contender that leaves, if the node may remain because of the
// failure.
func (d *directory) noteUndeleted(serial uint64, why messages.Reason) {
	node, made := d.state.Node(serial)
	lost := why == messages.Reason_SESSION_LOST
	if node != "" && (made && why != messages.Reason_CLOSED || lost) {
		d.actor.Manager.NoteUndeleted(d.nodePath(node))
	}
}

package recipes

import (
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// directory is one directory of a lock, with the queue of its contenders. It feeds events to its
// lockqueue.State: the requests of owners, and what the bridge answers (bridgeanswers.go). Most effects
// become messages to the bridge.
type directory struct {
	actor    *directories          // all of the actor, which they embed
	news     func(requests.Effect) // takes the effects for owners, or for the machine of a semaphore or local queue
	path     string
	recipe   *manager.Recipe
	state    *lockqueue.State
	required string                        // the lock's path, which must exist; "" if the bridge makes the directory
	left     *atomic.Uint64                // the Tally's number for the latest departure since the last grant, local or remote; nil without one
	delay    *time.Timer                   // of the LockDelay under way
	creates  map[requests.ID]*atomicCreate // by request: the atomic create that is to make its node
	together *[]*zkbridge.Create           // collected by acquireWith; nil at other times
	awaited  map[uint64][]func()           // what is to be called once a node is gone that leaves, by its serial
}

// feed applies an event to the state and performs the effects.
func feed[E lockqueue.Event](d *directory, e E) {
	effects := lockqueue.Step(d.state, e)
	grants := false
	for i := range effects {
		grants = grants || effects[i].Kind == requests.Grant
	}
	if grants {
		d.countHandOff(any(e))
	}
	for i := range effects {
		d.perform(&effects[i], grants)
	}
	d.state.Performed()
	if len(d.awaited) > 0 {
		d.callBehindNodes(e)
	}
}

// acquire begins a request. With an atomic create its node is made together with those of other
// locks.
func (d *directory) acquire(r requests.Incoming, with *atomicCreate) {
	if d.state.Idle() {
		d.left = nil // the lock was idle: this request waits for no departure before it
	}
	if with != nil {
		d.expect(r.ID, with)
	}
	r.Atomic = with != nil
	feed(d, lockqueue.Acquire(r))
}

// perform performs one effect of an event: the news for owners by d.news, the others by the bridge. grants
// reports whether the event also grants the lock to a contender of this process: see releaseNode.
func (d *directory) perform(f *lockqueue.Effect, grants bool) {
	if f.Kind == requests.Refuse {
		delete(d.creates, f.ID) // it is still there if the request had no CreateNode
	}
	if f.Kind.IsNews() {
		d.news(f.Effect)
		return
	}
	switch f.Kind {
	case requests.CreateNode:
		d.create(f)
	case requests.ListDirectory:
		d.actor.bridge().SendList(&messages.List{Id: d.idOf(f.Serial), Epoch: d.actor.epoch, Directory: d.path, Watch: f.Watch}, d.actor.Self)
	case requests.WatchNodes:
		d.actor.bridge().SendWatch(&messages.Watch{Id: d.idOf(f.Serial), Epoch: d.actor.epoch, Directory: d.path, Nodes: f.Nodes, WithData: f.WithData, Since: f.Since}, d.actor.Self)
	case requests.DeleteNode:
		d.releaseNode(f.Serial, f.Node, grants)
	default:
		d.performRare(f)
	}
}

func (d *directory) create(f *lockqueue.Effect) {
	msg := &messages.Create{Id: d.idOf(f.Serial), Epoch: d.actor.epoch, Directory: d.path, Prefix: f.Node, Guard: f.Guard,
		Data: d.actor.Manager.NodeData(f.Data, f.Owner), ListAfter: f.ListAfter, After: f.After, DirectoryExists: f.DirectoryExists,
		DirectorySeen: f.DirectorySeen, ParentIsOwn: d.recipe.OwnsParent, Required: d.required}
	if f.ID != 0 || d.together != nil { // f.ID is set for an atomic create only
		d.createWithOthers(f.ID, msg)
		return
	}
	d.actor.bridge().SendCreate(msg, d.actor.Self)
}

package recipes

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// The effects of a directory that few locks have, transactions, the lock-delay and hand-offs.

func (d *directory) performRare(f *lockqueue.Effect) {
	switch f.Kind {
	case requests.RestoreData:
		if data := d.actor.Manager.NodeData(f.Data, f.Owner); len(data) > 0 {
			d.actor.bridge().SendTransact(&messages.Transact{Epoch: d.actor.epoch, Ops: []*messages.Op{
				{Kind: messages.Op_SET, Path: d.nodePath(f.Node), Data: data}}}, nil)
		}
	case requests.DeleteDirectory:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_DELETE, Path: d.path})
	case requests.ReportUnknownChild:
		d.reportUnknownChild(f.Node)
	case requests.ReportClients:
		d.reportClients()
	case requests.ReportPermits:
		d.reportPermits(f.Node, f.Permits)
	default:
		d.performDelay(f)
	}
}

// acquireWith begins a request of a machine on top. more reports that another one follows: one
// transaction makes the nodes of all of them, or several in a row if they do not fit into one.
func (d *directory) acquireWith(more bool, r requests.Incoming, with *atomicCreate) {
	if more && d.together == nil {
		d.together = new([]*zkbridge.Create)
	}
	d.acquire(r, with)
	if !more && d.together != nil {
		d.actor.Manager.Bridge.CreateEach(*d.together)
		d.together = nil
	}
}

// cancel withdraws a request, or takes back its grant. unclean reports that the work under the
// grant may go on.
func (d *directory) cancel(id requests.ID, unclean bool, why requests.Reason) {
	if d.state.Holds(id) {
		d.left = &d.actor.Tally.LocalHandOffs
	}
	feed(d, lockqueue.Cancel{ID: id, Reason: why, Unclean: unclean})
}

// release takes back a grant.
func (d *directory) release(id requests.ID) {
	d.left = &d.actor.Tally.LocalHandOffs
	feed(d, lockqueue.Release{ID: id})
}

// expect has the node of a request made by an atomic create.
func (d *directory) expect(id requests.ID, with *atomicCreate) {
	if d.creates == nil {
		d.creates = map[requests.ID]*atomicCreate{}
	}
	d.creates[id] = with
}

// createWithOthers creates a node together with nodes of other requests: of an atomic create if id
// is not 0, and of acquireWith otherwise.
func (d *directory) createWithOthers(id requests.ID, msg *messages.Create) {
	create := d.actor.Manager.Bridge.NewCreate(d.actor.Self, msg)
	switch c := d.creates[id]; {
	case c != nil:
		delete(d.creates, id)
		c.add(create)
	case id != 0: // that request has ended; others may wait for the node, but it must not be made alone
		refuseCreates(create)
	default:
		*d.together = append(*d.together, create)
	}
}

func (d *directory) nodePath(node string) string { return zkpath.Join(d.path, node) }

// releaseNode deletes a node. relaxed reports that the lock was handed on within this process. The bridge may
// then put the deletion into a later batch, because other processes mostly wait for the new holder, too. (An
// exception: this process releases a writer and grants readers. A reader of another process behind them waits
// only for the writer's node to be deleted, and so is delayed with it.)
func (d *directory) releaseNode(serial uint64, node string, relaxed bool) {
	d.actor.bridge().SendReleaseNode(&messages.ReleaseNode{Id: d.idOf(serial), Epoch: d.actor.epoch, Directory: d.path, Node: node, Relaxed: relaxed}, d.actor.Self)
}

// transact has all operations done or none.
func (d *directory) transact(serial uint64, ops ...*messages.Op) {
	d.actor.bridge().SendTransact(&messages.Transact{Id: d.idOf(serial), Epoch: d.actor.epoch, Ops: ops}, d.actor.Self)
}

// delayElapsed is the message of a lock to itself that its delay is over.
type delayElapsed struct{ serial uint64 }

// performDelay performs the effects of a rule with a lock-delay.
func (d *directory) performDelay(f *lockqueue.Effect) {
	node, marker := d.nodePath(f.Node), d.path+queue.HeldMarkerSuffix
	switch f.Kind {
	case requests.CreateHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_CREATE, Path: marker, Data: []byte(f.Node)})
	case requests.ReplaceHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_SET, Path: marker, Data: []byte(f.Node)})
	case requests.DeleteWithHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_DELETE, Path: node},
			&messages.Op{Kind: messages.Op_DELETE, Path: marker})
	case requests.ReadHeldMarker:
		directory, name := zkpath.Split(marker)
		d.actor.bridge().SendWatch(&messages.Watch{Id: d.idOf(f.Serial), Epoch: d.actor.epoch, Directory: directory,
			Nodes: []string{name}, WithData: true}, d.actor.Self)
	case requests.StartDelay:
		d.actor.Manager.Log.Info("lock was not released by its last holder; its delay begins", "path", d.path, "delay", d.recipe.Delay)
		elapsed := delayElapsed{f.Serial} // the memory of f is another effect's by then
		d.delay = time.AfterFunc(d.recipe.Delay, func() { d.actor.Self.Tell(elapsed) })
	case requests.ReportHeldMarker:
		d.actor.Manager.Log.Warn("held marker of a lock cannot be removed: the next holder will wait for the lock-delay",
			"path", d.path, "marker", marker, "why", d.actor.Detail,
			"do", "grant DELETE on the marker's directory, or delete the marker")
	}
}

// noteGone notes that the node of a contender was deleted.
func (d *directory) noteGone(node string) {
	if node != "" && !d.state.IsOwn(node) {
		d.left = &d.actor.Tally.RemoteHandOffs
	}
}

// countHandOff counts the grant that an event has led to. A contender that is granted with its
// creation or its re-entry had nothing to wait for.
func (d *directory) countHandOff(event any) {
	switch event.(type) {
	case lockqueue.Created, lockqueue.Acquire:
	default:
		if d.left != nil {
			d.left.Add(1)
		}
	}
	d.left = nil
}

package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// performRare performs the effects that few locks have.
func (l *lockActor) performRare(f *lockqueue.Effect) {
	switch f.Kind {
	case lockqueue.RestoreData:
		if data := l.Manager.NodeData(f.Data, f.Owner); len(data) > 0 {
			l.bridge.SendTransact(&messages.Transact{Epoch: l.epoch, Ops: []*messages.Op{
				{Kind: messages.Op_SET, Path: l.nodePath(f.Node), Data: data}}}, nil)
		}
	case lockqueue.DeleteDirectory:
		l.transact(f.Serial, &messages.Op{Kind: messages.Op_DELETE, Path: l.Path})
	case lockqueue.RequestRevoke:
		l.RequestRevoke(f.ID)
	case lockqueue.NotifyContended:
		l.NotifyContended(f.ID)
	case lockqueue.ReportUnknownChild:
		l.reportUnknownChild(f.Node)
	case lockqueue.ReportClients:
		l.reportClients()
	case lockqueue.ReportPermits:
		l.reportPermits(f.Node, f.Permits)
	default:
		l.performDelay(f)
	}
}

// releaseNode deletes a node. relaxed reports that the lock was handed on within this process.
func (l *lockActor) releaseNode(serial uint64, node string, relaxed bool) {
	l.bridge.SendReleaseNode(&messages.ReleaseNode{Id: serial, Epoch: l.epoch, Directory: l.Path, Node: node, Relaxed: relaxed}, l.Self)
}

// transact has all operations done or none.
func (l *lockActor) transact(serial uint64, ops ...*messages.Op) {
	l.bridge.SendTransact(&messages.Transact{Id: serial, Epoch: l.epoch, Ops: ops}, l.Self)
}

func (l *lockActor) nodePath(node string) string { return l.Path + "/" + node }

// createWithOthers creates a node together with nodes of other requests: of an atomic create if id is
// not 0, and of acquireLeases otherwise.
func (l *lockActor) createWithOthers(id requests.ID, msg *messages.Create) {
	spec := zkbridge.CreateSpec{From: l.Self, Create: msg}
	switch c := l.atomicCreates[id]; {
	case c != nil:
		delete(l.atomicCreates, id)
		c.add(spec)
	case id != 0: // that request has ended; others may wait for the node, but it must not be made alone
		refuseCreates([]zkbridge.CreateSpec{spec})
	default:
		l.leaseCreates = append(l.leaseCreates, spec)
	}
}

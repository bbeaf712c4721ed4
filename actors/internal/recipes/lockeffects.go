package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/messages"
)

// performRare performs the effects that few locks have.
func (l *lockActor) performRare(f lockqueue.Effect) {
	switch f.Kind {
	case lockqueue.RestoreData:
		if data := l.Manager.NodeData(f.Data, f.Owner); len(data) > 0 {
			l.bridge.SendTransact(&messages.Transact{Epoch: l.epoch, Ops: []*messages.Op{
				{Kind: messages.Op_SET, Path: l.nodePath(f.Node), Data: data}}}, nil)
		}
	case lockqueue.RequestRevoke:
		l.RequestRevoke(f.ID)
	case lockqueue.NotifyContended:
		l.NotifyContended(f.ID)
	case lockqueue.ReportUnknownChild:
		l.reportUnknownChild(f.Node)
	default:
		l.performDelay(f)
	}
}

// resetDirectory deletes the node, and the directory with it if that is empty then.
func (l *lockActor) resetDirectory(serial uint64, node string) {
	if l.resets == nil {
		l.resets = map[uint64]string{}
	}
	l.resets[serial] = node
	l.transact(serial, "", &messages.Op{Kind: messages.Op_DELETE, Path: l.nodePath(node)},
		&messages.Op{Kind: messages.Op_DELETE, Path: l.Path})
}

// releaseAfterReset deletes a node alone that may not have been deleted with its directory, and
// reports whether it has found such a node.
func (l *lockActor) releaseAfterReset(serial uint64) bool {
	node, was := l.resets[serial]
	if was {
		delete(l.resets, serial)
		l.releaseNode(serial, node, false)
	}
	return was
}

package recipes

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/messages"
)

// heldMarkerSuffix makes the path of a lock's held marker. The marker is no child of the lock's
// directory: other libraries take children for contenders.
const heldMarkerSuffix = "-__held__"

// delayElapsed is the message of a lock to itself that its delay is over.
type delayElapsed struct{ serial uint64 }

// performDelay performs the effects of a rule with a lock-delay.
func (l *lockActor) performDelay(f *lockqueue.Effect) {
	node, marker := l.nodePath(f.Node), l.Path+heldMarkerSuffix
	switch f.Kind {
	case lockqueue.CreateHeldMarker:
		l.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_CREATE, Path: marker, Data: []byte(f.Node)})
	case lockqueue.ReplaceHeldMarker:
		l.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_SET, Path: marker, Data: []byte(f.Node)})
	case lockqueue.DeleteWithHeldMarker:
		l.transact(f.Serial, &messages.Op{Kind: messages.Op_DELETE, Path: node},
			&messages.Op{Kind: messages.Op_DELETE, Path: marker})
	case lockqueue.ReadHeldMarker:
		directory, name := shell.SplitPath(marker)
		l.bridge.SendWatch(&messages.Watch{Id: f.Serial, Epoch: l.epoch, Directory: directory,
			Nodes: []string{name}, WithData: true}, l.Self)
	case lockqueue.StartDelay:
		l.Manager.Log.Info("lock was not released by its last holder; its delay begins", "path", l.Path, "delay", l.Recipe.Delay)
		elapsed := delayElapsed{f.Serial} // the memory of f is another effect's by then
		l.delayTimer = time.AfterFunc(l.Recipe.Delay, func() { l.Self.Tell(elapsed) })
	case lockqueue.ReportHeldMarker:
		l.Manager.Log.Warn("held marker of a lock cannot be removed: the next holder will wait for the lock-delay",
			"path", l.Path, "marker", marker, "why", l.Detail,
			"do", "grant DELETE on the marker's directory, or delete the marker")
	}
}

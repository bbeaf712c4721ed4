package recipes

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// delayElapsed is the message of a lock to itself that its delay is over.
type delayElapsed struct{ serial uint64 }

// performDelay performs the effects of a rule with a lock-delay.
func (d *directory) performDelay(f *lockqueue.Effect) {
	node, marker := d.nodePath(f.Node), d.path+queue.HeldMarkerSuffix
	switch f.Kind {
	case lockqueue.CreateHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_CREATE, Path: marker, Data: []byte(f.Node)})
	case lockqueue.ReplaceHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_SET, Path: marker, Data: []byte(f.Node)})
	case lockqueue.DeleteWithHeldMarker:
		d.transact(f.Serial, &messages.Op{Kind: messages.Op_DELETE, Path: node},
			&messages.Op{Kind: messages.Op_DELETE, Path: marker})
	case lockqueue.ReadHeldMarker:
		directory, name := zkpath.Split(marker)
		d.in.bridge().SendWatch(&messages.Watch{Id: d.idOf(f.Serial), Epoch: d.in.epoch, Directory: directory,
			Nodes: []string{name}, WithData: true}, d.in.Self)
	case lockqueue.StartDelay:
		d.in.Manager.Log.Info("lock was not released by its last holder; its delay begins", "path", d.path, "delay", d.recipe.Delay)
		elapsed := delayElapsed{f.Serial} // the memory of f is another effect's by then
		d.delay = time.AfterFunc(d.recipe.Delay, func() { d.in.Self.Tell(elapsed) })
	case lockqueue.ReportHeldMarker:
		d.in.Manager.Log.Warn("held marker of a lock cannot be removed: the next holder will wait for the lock-delay",
			"path", d.path, "marker", marker, "why", d.in.Detail,
			"do", "grant DELETE on the marker's directory, or delete the marker")
	}
}

package actors

import (
	"fmt"
	"reflect"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// maxDelay is the longest LockDelay, as in Chubby and in Consul.
const maxDelay = time.Minute

// LockDelay keeps a mutex closed for d after a holder that did not release it: whose
// session was lost, whose process ended or closed its Locks, or whose node was
// deleted. Its last writes may be under way still, and d is the time that they have to
// arrive, where what the lock protects cannot check tokens. After a release the next
// holds at once. d must be positive and at most a minute; the delay counts from when
// the next in line comes to know of it.
//
// All clients of the lock should have the same delay. Those without one, and those of
// other libraries, share the lock all the same, but neither wait nor make others wait.
// They leave a mark that is there as it is, so that somebody may wait for nothing.
//
// A holder is known by a mark, the node <path>-__held__, which it makes before it is
// granted the lock and removes together with its own node: a write more for each
// acquire, and no hand-off within a process without a round trip. A Close that overtakes
// a release is none: wait for Unlock. After an unclean end the mark stays until a holder
// releases again; to delete it by hand spares those who come then the delay.
//
// While the delay lasts requests wait as they do for other contenders: they can be
// cancelled and time out, and Try does not wait. The delay then goes on without them.
func LockDelay(d time.Duration) LockOption {
	return func(r *recipe) error {
		switch {
		case d <= 0 || d > maxDelay:
			return invalid(fmt.Sprintf("lock-delay %v: it must be positive and at most %v", d, maxDelay))
		case r.delay > 0:
			return invalid(fmt.Sprintf("lock-delay %v: there is one of %v already", d, r.delay))
		case len(r.deps) > 0 || !reflect.DeepEqual(r.rule, queue.Mutex()):
			return invalid(fmt.Sprintf("lock-delay %v: only a mutex can have one, not a %s", d, r.name))
		}
		r.name = fmt.Sprintf("%s with a lock-delay of %v", r.name, d)
		r.delay, r.rule.Delay = d, true
		return nil
	}
}

// heldMarkerSuffix makes the path of a lock's mark. The mark is no child of the lock's
// directory: other libraries take those for contenders.
const heldMarkerSuffix = "-__held__"

// delayElapsed is what a lock tells itself when its delay is over.
type delayElapsed struct{ serial uint64 }

// performDelay performs what concerns the mark.
func (l *lock) performDelay(f lockqueue.Effect) {
	node, mark := l.path+"/"+f.Node, l.path+heldMarkerSuffix
	switch f.Kind {
	case lockqueue.CreateHeldMarker:
		l.transact(f.Serial, "", &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_CREATE, Path: mark, Data: []byte(f.Node)})
	case lockqueue.ReplaceHeldMarker:
		l.transact(f.Serial, "", &messages.Op{Kind: messages.Op_CHECK, Path: node},
			&messages.Op{Kind: messages.Op_SET, Path: mark, Data: []byte(f.Node)})
	case lockqueue.DeleteWithHeldMarker:
		l.transact(f.Serial, "", &messages.Op{Kind: messages.Op_DELETE, Path: node},
			&messages.Op{Kind: messages.Op_DELETE, Path: mark})
	case lockqueue.ReadHeldMarker:
		directory, name := split(mark)
		l.bridge.SendWatch(&messages.Watch{Id: f.Serial, Epoch: l.epoch, Directory: directory,
			Nodes: []string{name}, WithData: true}, l.self)
	case lockqueue.StartDelay:
		l.manager.log.Info("lock was not released by its last holder; its delay begins", "path", l.path, "delay", l.recipe.delay)
		l.delay = time.AfterFunc(l.recipe.delay, func() { l.self.Tell(delayElapsed{f.Serial}) })
	case lockqueue.ReportHeldMarker:
		l.manager.log.Warn("mark of a lock cannot be removed: the next holder will wait for the lock-delay",
			"path", l.path, "mark", mark, "why", l.detail)
	}
}

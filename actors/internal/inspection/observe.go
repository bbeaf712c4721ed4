package inspection

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

const (
	// observePause is the least time between two reads of an observed queue.
	observePause = 100 * time.Millisecond
	// observePoll is the time between two reads of a directory that does not exist, and so has no
	// watch, and of one that cannot be read.
	observePoll = time.Second
	// observeCheck is the time between two reads of a directory without a change. A server that does not tell
	// a change, because READ was taken away at that moment, has forgotten the watch.
	observeCheck = 30 * time.Second
)

// observe publishes by the bridge: see Observe. It returns when publish returns false, ctx ends, or the
// bridge is closed.
func (t *Target) observe(ctx context.Context, _ struct{}, publish func(Snapshot, error) (more bool)) {
	if err := check.Path(t.Path); err != nil {
		publish(Snapshot{}, err)
		return
	}
	o := &observer{target: t, bridge: t.Manager.Bridge, changed: t.Again, publish: publish}
	if o.changed == nil {
		o.changed = make(chan struct{}, 1)
	}
	o.run(ctx)
}

// observer follows one queue in a goroutine of its own. The bridge wakes it.
type observer struct {
	target  *Target
	bridge  zkbridge.Internals
	changed chan struct{} // has room for one: the queue or the session may have changed
	publish func(Snapshot, error) (more bool)

	last    Snapshot                  // published last
	lastErr error                     // published with it
	started bool                      // last has been published
	absent  bool                      // a directory did not exist at the last read
	known   map[string]knownDirectory // by path
}

// knownDirectory is the contenders of a directory that need not be read again. Nothing writes to
// it.
type knownDirectory struct {
	czxid    int64
	children map[string]zkbridge.Child // by name
}

// Tell implements ask.Recipient, for Wake and SessionChanged.
func (o *observer) Tell(any) {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *observer) run(ctx context.Context) {
	o.bridge.Ref().SendSubscribe(&messages.Subscribe{}, o)
	defer o.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, o)
	for {
		q, err := o.read(ctx)
		if ctx.Err() != nil || errors.Is(err, messages.Reason_CLOSED) {
			return
		}
		o.target.noteGranted(q.Contenders)
		o.noteHolders(&q)
		if err != nil && q.Recipe == "" { // otherwise the queue has been read without its tokens
			q = o.last
		}
		if !o.started || !sameReason(err, o.lastErr) || !reflect.DeepEqual(q, o.last) {
			if !o.publish(o.target.permitted(q, err)) {
				return
			}
			o.last, o.lastErr, o.started = q, err, true
		}
		select {
		case <-time.After(cmp.Or(o.target.Pause, observePause)):
		case <-ctx.Done():
			return
		}
		poll := observeCheck
		if err != nil || o.absent {
			poll = observePoll
		}
		select {
		case <-o.changed:
		case <-time.After(poll):
		case <-ctx.Done():
			return
		}
		select {
		case <-o.changed: // asks for the read that follows, too, which finds all of it
		default:
		}
	}
}

// noteHolders notes when contenders have come to hold: at this read if they did not hold at the one
// before, right before this one. The leases of a semaphore whose permits are not known may have held
// before that was known.
func (o *observer) noteHolders(q *Snapshot) {
	held := map[string]time.Time{} // contenders that held at the last read
	for _, c := range o.last.Contenders {
		if c.Holds {
			held[c.Node] = c.HeldSince
		}
	}
	seen := o.started && o.lastErr == nil && (q.Recipe != semaphore || q.Permits > 0)
	for i := range q.Contenders {
		c := &q.Contenders[i]
		since, was := held[c.Node]
		switch {
		case !c.Holds:
		case was && !since.IsZero():
			c.HeldSince = since
		case !was && seen && c.HeldSince.IsZero():
			c.HeldSince = time.Now()
		}
	}
}

// sameReason reports whether a reader would see no difference between two errors of observe. Two of
// a lost connection are the same, although their texts say for how long.
func sameReason(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return errors.Is(a, messages.Reason_DISCONNECTED) && errors.Is(b, messages.Reason_DISCONNECTED) || a.Error() == b.Error()
}

// read reads the queue, and sets the watches.
func (o *observer) read(ctx context.Context) (Snapshot, error) {
	known := map[string]knownDirectory{}
	o.absent = false
	r := reader{
		children: func(directory string) ([]zkbridge.Child, error) { return o.children(ctx, directory, known) },
		data:     func(path string) (zkbridge.NodeView, error) { return o.bridge.PeekData(ctx, path) },
		session:  o.bridge.Session().ID,
	}
	q, err := r.read(o.target.Path)
	if err == nil {
		o.known = known
	}
	return q, err
}

// children reads and watches the names in a directory, and those contenders that are not known yet.
// It notes the directory in known.
func (o *observer) children(ctx context.Context, directory string, known map[string]knownDirectory) ([]zkbridge.Child, error) {
	before := o.known[directory]
	all, czxid, err := o.bridge.WatchChildren(ctx, directory, func(name string) bool {
		_, is := before.children[name]
		return !is && mayContend(name)
	}, o)
	if err == nil && czxid != before.czxid && len(before.children) > 0 { // another directory, whose numbers begin anew
		delete(o.known, directory)
		return o.children(ctx, directory, known)
	}
	o.absent = o.absent || czxid == 0
	now := knownDirectory{czxid, map[string]zkbridge.Child{}}
	for i, c := range all {
		if was, is := before.children[c.Name]; is {
			all[i] = was
		}
		if keeps(all[i]) {
			now.children[c.Name] = all[i]
		}
	}
	known[directory] = now
	return all, err
}

// keeps reports whether a node of this name will never be another in its directory, and its data
// stay. A holder restores the data that a revocation has overwritten.
func keeps(c zkbridge.Child) bool {
	return mayContend(c.Name) && c.Stat.Czxid != 0 && string(c.Data) != queue.RevokeData
}

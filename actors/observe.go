package actors

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
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
)

// Observe returns a channel with the queue of the lock at path, as Inspect returns it, and then
// again whenever contenders come or go:
//
//	for q := range locks.Observe(ctx, "/locks/orders") { fmt.Println(q) }
//
// A slow reader finds the newest queue, not those between, and delays no other part of the program.
// The queue is read ten times a second at most, and what a new contender brings is read once: a hot
// lock with many waiters costs little more than an idle one. ZooKeeper has one watch of this
// session for each of the lock's directories, however many observers there are; while the directory
// does not exist, Observe asks for it every second.
//
// Participants that come to hold meanwhile have a HeldSince, as the holders of this process have.
//
// Observe outlives the loss of connections and sessions. While the queue cannot be read, its Err is
// set, and the participants are those that were read last: see [Queue]. The server that this
// process is connected to may lag behind the others: see Inspect. The channel is closed when ctx
// ends or Locks is closed. If path is not acceptable or ctx is nil, the channel has one Queue with
// the Err, and is closed.
func (l *Locks) Observe(ctx context.Context, path string) <-chan Queue {
	out := make(chan Queue, 1)
	l.observe(ctx, path, func(q Queue) {
		select {
		case <-out: // not read yet
		default:
		}
		out <- q
	}, func() { close(out) })
	return out
}

// ObserveTo is Observe for an actor: it gets each Queue as a message, in order, from the start
// until ctx ends, the actor ends, or Locks is closed. An actor that is slow gets all of them.
func (l *Locks) ObserveTo(ctx context.Context, path string, to *actor.PID) {
	stop := func() {}
	if ctx != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		unwatch := l.manager.OnEnd(to, cancel)
		stop = func() {
			unwatch()
			cancel()
		}
	}
	l.observe(ctx, path, func(q Queue) { l.manager.ActorSystem().Root.Send(to, q) }, stop)
}

func (l *Locks) observe(ctx context.Context, path string, publish func(Queue), end func()) {
	err := check.Path(path)
	if ctx == nil {
		err = check.ErrNilContext
	}
	if err != nil {
		publish(Queue{Path: path, Err: err})
		end()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(l.closed, cancel)
	go func() {
		if h := l.at(path); l.manager.Remote != nil {
			h.follow(ctx, publish)
		} else {
			h.observe(ctx, none{}, func(q Queue, _ error) bool {
				publish(q)
				return true
			})
		}
		unwatch()
		cancel()
		end()
	}()
}

func (h *handle) observe(ctx context.Context, _ none, next func(Queue, error) (more bool)) {
	if err := check.Path(h.path); err != nil {
		next(Queue{Path: h.path, Err: err}, err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := &observer{bridge: h.manager.Bridge, manager: h.manager, path: h.path, changed: make(chan struct{}, 1)}
	o.publish = func(q Queue) {
		if !next(q, q.Err) {
			cancel()
		}
	}
	o.run(ctx)
}

// observer follows one queue in a goroutine of its own. The bridge wakes it.
type observer struct {
	bridge  *zkbridge.Bridge
	manager *manager.Manager
	path    string
	changed chan struct{} // has room for one: the queue or the session may have changed
	publish func(Queue)

	last    Queue                     // published last
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
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return
		}
		q.noteOwnGrants(o.manager, o.path)
		o.noteHolders(&q)
		if err != nil && q.Recipe == "" { // otherwise the queue has been read without its tokens
			q = o.last
		}
		q.Path, q.Err = o.path, err
		if !o.started || !sameQueue(q, o.last) {
			o.publish(q)
			o.last, o.started = q, true
		}
		select {
		case <-time.After(observePause):
		case <-ctx.Done():
			return
		}
		var poll <-chan time.Time
		if err != nil || o.absent {
			poll = time.After(observePoll)
		}
		select {
		case <-o.changed:
		case <-poll:
		case <-ctx.Done():
			return
		}
	}
}

// noteHolders notes when participants have come to hold: at this read if they did not hold at the
// one before, right before this one. The leases of a semaphore whose permits are not known may have
// held before that was known.
func (o *observer) noteHolders(q *Queue) {
	held := map[string]time.Time{} // participants that held at the last read
	for _, p := range o.last.Participants {
		if p.Holds {
			held[p.Node] = p.HeldSince
		}
	}
	seen := o.started && o.last.Err == nil && (q.Recipe != semaphore || q.Permits > 0)
	for i := range q.Participants {
		p := &q.Participants[i]
		since, was := held[p.Node]
		switch {
		case !p.Holds:
		case was && !since.IsZero():
			p.HeldSince = since
		case !was && seen && p.HeldSince.IsZero():
			p.HeldSince = time.Now()
		}
	}
}

// sameQueue reports whether a reader would see no difference. Two errors of one kind are the same,
// although the text of ErrSuspended says for how long.
func sameQueue(a, b Queue) bool {
	if a.Err != nil && b.Err != nil &&
		(errors.Is(a.Err, ErrSuspended) && errors.Is(b.Err, ErrSuspended) || a.Err.Error() == b.Err.Error()) {
		a.Err = b.Err
	}
	return reflect.DeepEqual(a, b)
}

// read reads the queue, and sets the watches.
func (o *observer) read(ctx context.Context) (Queue, error) {
	known := map[string]knownDirectory{}
	o.absent = false
	r := queueReader{
		children: func(directory string) ([]zkbridge.Child, error) { return o.children(ctx, directory, known) },
		data:     func(path string) (zkbridge.NodeView, error) { return o.bridge.PeekData(ctx, path) },
		session:  o.bridge.Session().ID,
	}
	q, err := r.read(o.path)
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
		return !is && recipes.MayContend(name)
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
	return recipes.MayContend(c.Name) && c.Stat.Czxid != 0 && string(c.Data) != queue.RevokeData
}

package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// NodeView is a node as [Bridge.GetNode] or [Bridge.GetData] has read it.
type NodeView struct {
	Exists bool
	Stat   zk.Stat  // of the node, if it exists
	Data   []byte   // of the node, of the same moment as Stat; only from GetData
	Names  []string // in the node's directory, its own among them; none if there is no directory

	// DirectoryCzxid tells directories of one path apart that were made one after the other; 0 if
	// there is none.
	DirectoryCzxid int64
}

// GetNode reads whether a node exists, and which names its directory has. It does not see less than
// ZooKeeper had acknowledged to any client when GetNode was called, also on a server that lags
// behind: a transaction goes ahead of the reads. The node and the names are read at two moments,
// both during the call.
//
// GetNode blocks until it has read, until ctx ends or until the session is lost. It waits while the
// session is SUSPENDED. The errors are as for [Bridge.Multi], without OUTCOME_UNKNOWN. An actor
// must not call it.
func (b *Bridge) GetNode(ctx context.Context, path string) (NodeView, error) {
	if path == "/" {
		return NodeView{}, fmt.Errorf("zkbridge: %w: path /: the root is in no directory", messages.Reason_INVALID)
	}
	directory, node := zkpath.Split(path)
	return newRead(ctx, b, path, directory, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		l, err := zkconn.LookUp(c, directory, node)
		return NodeView{Exists: l.Exists, Stat: l.Stat, Names: l.Listing.Children, DirectoryCzxid: l.Listing.Czxid}, err
	}).wait(b)
}

// GetData is GetNode with the node's data, and without the directory.
func (b *Bridge) GetData(ctx context.Context, path string) (NodeView, error) {
	directory, _ := zkpath.Split(path)
	return b.getData(ctx, path, directory)
}

// PeekData is GetData without the transaction: on a server that lags behind it may see less than
// ZooKeeper had acknowledged to other clients, though not less than this session has seen before.
func (b *Bridge) PeekData(ctx context.Context, path string) (NodeView, error) {
	return b.getData(ctx, path, noBarrier)
}

func (b *Bridge) getData(ctx context.Context, path, barrier string) (NodeView, error) {
	return newRead(ctx, b, path, barrier, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		found, err := zkconn.Read(c, path, false)
		if err = zkconn.ExplainRight(c, err, "READ", path); err != nil {
			return NodeView{}, err
		}
		return NodeView{Exists: true, Stat: found.Stat, Data: found.Data}, nil
	}).wait(b)
}

// Child is one node of a directory as [Bridge.Children] has read it. A node that this client may
// not READ has no Data here and, from servers of ZooKeeper 3.8.4 and 3.9.2 on, a zero Stat.
type Child struct {
	Name string
	Data []byte
	Stat zk.Stat
}

// Children reads the nodes of a directory, in no order; none if there is no directory. It leaves
// out nodes that are deleted while it reads. Of nodes whose names wanted refuses it returns only
// the name; a nil wanted refuses none. Otherwise it is as [Bridge.GetNode]; it sends a request for
// each node. All calls of Children and WatchChildren have at most 16 requests under way, so that
// locks do not wait for them.
func (b *Bridge) Children(ctx context.Context, directory string, wanted func(name string) bool) ([]Child, error) {
	found, err := b.survey(newSurvey(ctx, b, directory, directory, nil, wanted))
	return found.children, err
}

// WatchChildren is Children without the transaction, see PeekData. Unless to is nil it sets a
// watch: to gets one Wake when names have come to the directory or have gone since, or the
// directory itself has gone. czxid tells directories of one path apart; it is 0, and there is no
// watch, if there is no directory. An Unsubscribe of to takes all its watches back; they are gone,
// too, when the session is lost.
func (b *Bridge) WatchChildren(ctx context.Context, directory string, wanted func(name string) bool, to ask.Recipient) (children []Child, czxid int64, err error) {
	if err := watches.CheckComparable(to); err != nil {
		return nil, 0, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	found, err := b.survey(newSurvey(ctx, b, directory, noBarrier, to, wanted))
	return found.children, found.czxid, err
}

// survey is the nodes of a directory.
type survey struct {
	children []Child
	czxid    int64 // of the directory
}

// newSurvey returns a request that reads the nodes of a directory, and sets a watch unless to is
// nil.
func newSurvey(ctx context.Context, b *Bridge, directory, barrier string, to ask.Recipient, wanted func(string) bool) *readRequest[survey] {
	r := newRead(ctx, b, directory, barrier, func(c zkconn.Client, s jobs.ReadSlots) (survey, error) {
		return readChildren(ctx, c, s, directory, to != nil, wanted)
	})
	r.survey, r.watch = true, to
	return r
}

// survey waits for a survey, which begins when the ReadLimit of its context allows it.
func (b *Bridge) survey(r *readRequest[survey]) (survey, error) {
	if r.ctx == nil {
		return survey{}, errNilContext
	}
	end, err := readLimitOf(r.ctx).begin(r.ctx)
	if err != nil {
		return survey{}, fmt.Errorf("zkbridge: look at %s: %w", r.path, err)
	}
	defer end()
	return r.wait(b)
}

func readChildren(ctx context.Context, c zkconn.Client, s jobs.ReadSlots, directory string, watch bool, wanted func(string) bool) (survey, error) {
	listing, err := zkconn.Children(c, directory, watch)
	if err != nil {
		return survey{}, zkconn.ExplainRight(c, err, "READ", directory)
	}
	count, names := readLimitOf(ctx).count(directory), 0
	for _, name := range listing.Children {
		names += len(name)
	}
	if err := count(len(listing.Children), names); err != nil {
		return survey{}, err
	}
	var all, read []Child
	for _, name := range listing.Children {
		if wanted == nil || wanted(name) {
			read = append(read, Child{Name: name})
		} else {
			all = append(all, Child{Name: name})
		}
	}
	err = s.Each(ctx, len(read), func(i int) (err error) {
		if read[i], err = readChild(c, directory, read[i].Name); err == nil {
			err = count(0, len(read[i].Data))
		}
		return err
	})
	all = append(all, slices.DeleteFunc(read, func(c Child) bool { return c.Name == "" })...)
	return survey{all, listing.Czxid}, err
}

// readChild reads one node. A missing node has no name in the result.
func readChild(c zkconn.Client, directory, name string) (Child, error) {
	path := zkpath.Join(directory, name)
	found, err := zkconn.Read(c, path, false)
	if errors.Is(err, zk.ErrNoAuth) { // older servers tell the stat
		var exists bool
		switch found.Stat, exists, err = c.Exists(path, false); {
		case exists:
			err = nil
		case err == nil:
			err = zk.ErrNoNode
		}
	}
	if zkconn.IsMissing(err) {
		return Child{}, nil
	}
	return Child{name, found.Data, found.Stat}, zkconn.ExplainRight(c, err, "READ", path)
}

// readRequest is a call that only reads. The bridge may send it again at any time.
type readRequest[T any] struct {
	call
	ctx       context.Context
	result    *ask.Promise[T]
	path      string // for errors
	directory string // of the barrier: nothing that is older than the call is read in it
	read      func(zkconn.Client, jobs.ReadSlots) (T, error)
	survey    bool // it may read many nodes
	missing   bool // there is no such node or directory
	hangUps   zkconn.HangUps

	// watch gets a Wake for the watch on the names in path that read sets, if it is not nil.
	// watcher is not nil then, while the read is under way.
	watch   ask.Recipient
	watcher *watches.Watcher
}

// noBarrier is in the place of a barrier's directory.
const noBarrier = ""

// newRead returns a request that calls do behind a barrier. The zero value stands for a directory
// that does not exist.
func newRead[T any](ctx context.Context, b *Bridge, path, directory string, do func(zkconn.Client, jobs.ReadSlots) (T, error)) *readRequest[T] {
	return &readRequest[T]{call: call{epoch: b.Session().Epoch, failFast: b.failFast}, ctx: ctx, result: ask.NewPromise[T](nil), path: path, directory: directory, read: do}
}

func (r *readRequest[T]) wait(b *Bridge) (none T, err error) {
	if r.ctx == nil {
		return none, errNilContext
	}
	if err := zkpath.Check(r.path); err != nil {
		return none, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	b.ref.Tell(r)
	if !r.result.Await(r.ctx) {
		b.withdraw(r)
		return none, b.explained(r.ctx, fmt.Errorf("zkbridge: look at %s: %w", r.path, context.Cause(r.ctx)))
	}
	value, err := r.result.Take()
	return value, b.explained(r.ctx, err)
}

func (r *readRequest[T]) start(ep *epoch) {
	if r.watch != nil { // before the read is sent: the event may come before the answer
		r.watcher = ep.watches.Add(r.watch, zkpath.Children(r.path))
	}
	in := ep.calls
	if r.survey {
		in = ep.surveys
	}
	in.AddBlocking(func() func() {
		value, err := r.behindBarrier(ep.client, in.Slots)
		return func() { r.handleResult(ep, value, err) }
	})
}

func (r *readRequest[T]) behindBarrier(c zkconn.Client, s jobs.ReadSlots) (value T, err error) {
	if err = context.Cause(r.ctx); err != nil {
		return value, err
	}
	barrier := func() error { return nil }
	if r.directory != noBarrier {
		barrier = zkconn.SendBarrier(c, r.directory)
	}
	value, err = r.read(c, s) // which is answered behind the barrier
	if passed := barrier(); passed != nil && !zkconn.IsMissing(passed) {
		err = zkconn.ExplainRight(c, passed, "READ", r.directory)
	}
	if r.missing = zkconn.IsMissing(err); r.missing { // the directory, and all its nodes
		err = nil
	}
	return value, err
}

func (r *readRequest[T]) handleResult(ep *epoch, value T, err error) {
	ep.watches.OnRead(r.watcher, err == nil && !r.missing)
	if !ep.IsOpen(r) {
		return // the caller has stopped waiting
	}
	if err != nil && !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) { // otherwise it has its reason
		if zkconn.IsTransient(err) {
			if err = ep.retryRead(&r.hangUps, err, func() { r.start(ep) }); err == nil {
				return
			}
		}
		why := zkconn.ReasonFor(err)
		err = fmt.Errorf("zkbridge: look at %s: %w: %w", r.path, why, err)
	}
	ep.close(r)
	r.result.Complete(value, err)
}

// Fail implements reply.Failer.
func (r *readRequest[T]) Fail(why messages.Reason, detail string) {
	var none T
	r.result.Complete(none, fmt.Errorf("zkbridge: look at %s: %w", r.path,
		&messages.Failed{Epoch: r.epoch, Reason: why, Detail: detail}))
}

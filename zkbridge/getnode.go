package zkbridge

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// NodeView is a node as Internals.GetNode or Internals.GetData has read it.
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
// session is SUSPENDED. The errors are as for Internals.Multi, without OUTCOME_UNKNOWN. An actor
// must not call it.
func (b *internals) GetNode(ctx context.Context, path string) (NodeView, error) {
	if path == "/" {
		return NodeView{}, fmt.Errorf("zkbridge: %w: path /: the root is in no directory", messages.Reason_INVALID)
	}
	directory, node := zkpath.Split(path)
	return wait(b, newRead(ctx, b, path, directory, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		l, err := zkconn.LookUp(c, directory, node)
		return NodeView{Exists: l.Exists, Stat: l.Stat, Names: l.Listing.Children, DirectoryCzxid: l.Listing.Czxid}, err
	}))
}

// GetData is GetNode with the node's data, and without the directory.
func (b *internals) GetData(ctx context.Context, path string) (NodeView, error) {
	directory, _ := zkpath.Split(path)
	return b.getData(ctx, path, directory)
}

// PeekData is GetData without the transaction: on a server that lags behind it may see less than
// ZooKeeper had acknowledged to other clients, though not less than this session has seen before.
func (b *internals) PeekData(ctx context.Context, path string) (NodeView, error) {
	return b.getData(ctx, path, requests.NoBarrier)
}

func (b *internals) getData(ctx context.Context, path, barrier string) (NodeView, error) {
	return wait(b, newRead(ctx, b, path, barrier, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		found, err := zkconn.Read(c, path)
		if err = zkconn.ExplainRight(c, err, "READ", path); err != nil {
			return NodeView{}, err
		}
		return NodeView{Exists: true, Stat: found.Stat, Data: found.Data}, nil
	}))
}

// newRead returns a request that calls do behind a barrier. The zero value stands for a directory that
// does not exist.
func newRead[T any](ctx context.Context, b *internals, path, directory string, do func(zkconn.Client, jobs.ReadSlots) (T, error)) *requests.Read[T] {
	return &requests.Read[T]{Call: b.callIn(b.Session().Epoch), Ctx: ctx, Result: ask.NewPromise[T](nil), Path: path, Barrier: directory, Do: do}
}

// wait sends a read and waits for its result.
func wait[T any](b *internals, r *requests.Read[T]) (none T, err error) {
	if r.Ctx == nil {
		return none, errNilContext
	}
	if err := zkpath.Check(r.Path); err != nil {
		return none, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	b.ref.Tell(r)
	if !r.Result.Await(r.Ctx) {
		b.withdraw(r)
		return none, b.explained(r.Ctx, fmt.Errorf("zkbridge: look at %s: %w", r.Path, context.Cause(r.Ctx)))
	}
	value, err := r.Result.Take()
	return value, b.explained(r.Ctx, err)
}

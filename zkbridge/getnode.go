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
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
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
	return wait(b, newRead(ctx, b, path, directory, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		l, err := zkconn.LookUp(c, directory, node)
		return NodeView{Exists: l.Exists, Stat: l.Stat, Names: l.Listing.Children, DirectoryCzxid: l.Listing.Czxid}, err
	}))
}

// GetData is GetNode with the node's data, and without the directory.
func (b *Bridge) GetData(ctx context.Context, path string) (NodeView, error) {
	directory, _ := zkpath.Split(path)
	return b.getData(ctx, path, directory)
}

// PeekData is GetData without the transaction: on a server that lags behind it may see less than
// ZooKeeper had acknowledged to other clients, though not less than this session has seen before.
func (b *Bridge) PeekData(ctx context.Context, path string) (NodeView, error) {
	return b.getData(ctx, path, requests.NoBarrier)
}

func (b *Bridge) getData(ctx context.Context, path, barrier string) (NodeView, error) {
	return wait(b, newRead(ctx, b, path, barrier, func(c zkconn.Client, _ jobs.ReadSlots) (NodeView, error) {
		found, err := zkconn.Read(c, path, false)
		if err = zkconn.ExplainRight(c, err, "READ", path); err != nil {
			return NodeView{}, err
		}
		return NodeView{Exists: true, Stat: found.Stat, Data: found.Data}, nil
	}))
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
	found, err := b.survey(newSurvey(ctx, b, directory, requests.NoBarrier, to, wanted))
	return found.children, found.czxid, err
}

// survey is the nodes of a directory.
type survey struct {
	children []Child
	czxid    int64 // of the directory
}

// newSurvey returns a request that reads the nodes of a directory, and sets a watch unless to is
// nil.
func newSurvey(ctx context.Context, b *Bridge, directory, barrier string, to ask.Recipient, wanted func(string) bool) *requests.Read[survey] {
	r := newRead(ctx, b, directory, barrier, func(c zkconn.Client, s jobs.ReadSlots) (survey, error) {
		return readChildren(ctx, c, s, directory, to != nil, wanted)
	})
	r.Survey, r.Watcher = true, to
	return r
}

// survey waits for a survey, which begins when the ReadLimit of its context allows it.
func (b *Bridge) survey(r *requests.Read[survey]) (survey, error) {
	if r.Ctx == nil {
		return survey{}, errNilContext
	}
	end, err := readLimitOf(r.Ctx).begin(r.Ctx)
	if err != nil {
		return survey{}, fmt.Errorf("zkbridge: look at %s: %w", r.Path, err)
	}
	defer end()
	return wait(b, r)
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

// newRead returns a request that calls do behind a barrier.
func newRead[T any](ctx context.Context, b *Bridge, path, directory string, do func(zkconn.Client, jobs.ReadSlots) (T, error)) *requests.Read[T] {
	return requests.NewRead(ctx, b.callIn(b.Session().Epoch), path, directory, do)
}

// wait sends a read and waits for its result.
func wait[T any](b *Bridge, r *requests.Read[T]) (none T, err error) {
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

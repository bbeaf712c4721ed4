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

// Child is one node of a directory as Internals.Children has read it. A node that this client may
// not READ has no Data here and, from servers of ZooKeeper 3.8.4 and 3.9.2 on, a zero Stat.
type Child struct {
	Name string
	Data []byte
	Stat zk.Stat
}

// Children reads the nodes of a directory, in no order; none if there is no directory. It leaves
// out nodes that are deleted while it reads. Of nodes whose names wanted refuses it returns only
// the name; a nil wanted refuses none. Otherwise it is as Internals.GetNode; a request
// reads up to 64 nodes, or one if nodes are large. All calls of Children and WatchChildren have at
// most 16 requests under way, so that locks do not wait for them.
func (b *internals) Children(ctx context.Context, directory string, wanted func(name string) bool) ([]Child, error) {
	found, err := b.survey(ctx, directory, directory, nil, wanted)
	return found.children, err
}

// WatchChildren is Children without the transaction, see PeekData. Unless to is nil it sets a
// watch: to gets one Wake when names have come to the directory or have gone since, or the
// directory itself has gone. czxid tells directories of one path apart; it is 0, and there is no
// watch, if there is no directory. An Unsubscribe of to takes all its watches back; they are gone,
// too, when the session is lost.
func (b *internals) WatchChildren(ctx context.Context, directory string, wanted func(name string) bool, to ask.Recipient) (children []Child, czxid int64, err error) {
	if err := watches.CheckComparable(to); err != nil {
		return nil, 0, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	found, err := b.survey(ctx, directory, requests.NoBarrier, to, wanted)
	return found.children, found.czxid, err
}

// survey is the nodes of a directory.
type survey struct {
	children []Child
	czxid    int64 // of the directory
}

// survey reads the nodes of a directory when the ReadLimit of its context allows it, and sets a watch
// unless to is nil.
func (b *internals) survey(ctx context.Context, directory, barrier string, to ask.Recipient, wanted func(string) bool) (survey, error) {
	if ctx == nil {
		return survey{}, errNilContext
	}
	r := newRead(ctx, b, directory, barrier, func(c zkconn.Client, s jobs.ReadSlots) (survey, error) {
		return readChildren(ctx, c, s, directory, to != nil, wanted)
	})
	r.Survey, r.Watcher = true, to
	end, err := readLimitOf(ctx).begin(ctx)
	if err != nil {
		return survey{}, fmt.Errorf("zkbridge: look at %s: %w", directory, err)
	}
	defer end()
	return wait(b, r)
}

func readChildren(ctx context.Context, c zkconn.Client, s jobs.ReadSlots, directory string, watch bool, wanted func(string) bool) (survey, error) {
	listing, err := zkconn.Children(c, directory, watch)
	if err != nil {
		return survey{}, zkconn.ExplainRight(c, err, "READ", directory)
	}
	r := &childReader{client: c, slots: s, directory: directory, count: readLimitOf(ctx).count(directory)}
	names := 0
	for _, name := range listing.Children {
		names += len(name)
	}
	if err := r.count(len(listing.Children), names); err != nil {
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
	err = r.read(ctx, read)
	all = append(all, slices.DeleteFunc(read, func(c Child) bool { return c.Name == "" })...)
	return survey{all, listing.Czxid}, err
}

// childReader reads nodes of one directory. Many share a message: the server and the client have less work
// with it than with a message for each.
type childReader struct {
	client    zkconn.Client
	slots     jobs.ReadSlots
	directory string
	count     func(nodes, bytes int) error // the error is that they are too many
}

const (
	// fewChildren is the number of nodes up to which one message for all saves nothing.
	fewChildren = 2
	// firstChildren is how many nodes the first message reads. Each may be as large as a node may be: so they
	// are as many as may be under way one by one.
	firstChildren = jobs.MaxSurveys
	// manyChildren bounds the nodes that share a message.
	manyChildren = 64
	// manyBytes is the data of nodes in one message from which on the others are read one by one.
	manyBytes = 256 << 10
)

// read reads the nodes that have the names. A missing node has no name afterwards.
func (r *childReader) read(ctx context.Context, rest []Child) error {
	for limit := firstChildren; len(rest) > fewChildren; limit = min(2*limit, manyChildren) {
		some := rest[:zkconn.Sharing(len(rest), limit, func(i int) int { return zkconn.OpBytes + len(r.directory) + len(rest[i].Name) })]
		rest = rest[len(some):]
		if err := r.readTogether(ctx, some); err != nil {
			return err
		}
		bytes := 0
		for _, c := range some {
			bytes += len(c.Data)
		}
		if bytes >= manyBytes {
			break
		}
	}
	return r.readEach(ctx, rest)
}

// readTogether reads nodes by one message. It reads those again by themselves that the message could not
// read.
func (r *childReader) readTogether(ctx context.Context, some []Child) error {
	reads := make([]zkconn.NodeRead, len(some))
	for i, c := range some {
		reads[i].Path = zkpath.Join(r.directory, c.Name)
	}
	var err error
	ended := r.slots.Each(ctx, 1, func(int) error {
		_, err = zkconn.Await(func(then zkconn.Callback[struct{}]) {
			r.client.ReadNodes(reads, func(err error) { then(struct{}{}, err) })
		})
		return nil
	})
	switch {
	case ended != nil:
		return ended
	case zkconn.IsTransient(err):
		return err
	case err != nil: // one node may be too large, or the server may not know the message
		return r.readEach(ctx, some)
	}
	var again []int
	for i, read := range reads {
		switch {
		case read.Err == nil:
			some[i].Data, some[i].Stat = read.Content.Data, read.Content.Stat
			if err := r.count(0, len(read.Content.Data)); err != nil {
				return err
			}
		case zkconn.IsMissing(read.Err):
			some[i] = Child{}
		default:
			again = append(again, i)
		}
	}
	return r.slots.Each(ctx, len(again), func(i int) error { return r.readOne(&some[again[i]]) })
}

// readEach reads each node by a message.
func (r *childReader) readEach(ctx context.Context, all []Child) error {
	return r.slots.Each(ctx, len(all), func(i int) error { return r.readOne(&all[i]) })
}

func (r *childReader) readOne(c *Child) error {
	path := zkpath.Join(r.directory, c.Name)
	found, err := zkconn.Read(r.client, path)
	if errors.Is(err, zk.ErrNoAuth) { // older servers tell the stat
		var exists bool
		switch found.Stat, exists, err = r.client.Exists(path); {
		case exists:
			err = nil
		case err == nil:
			err = zk.ErrNoNode
		}
	}
	if zkconn.IsMissing(err) {
		*c = Child{}
		return nil
	}
	c.Data, c.Stat = found.Data, found.Stat
	if err = zkconn.ExplainRight(r.client, err, "READ", path); err != nil {
		return err
	}
	return r.count(0, len(c.Data))
}

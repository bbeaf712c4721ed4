package zkbridge

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// View is what [Bridge.Look] or [Bridge.Read] has seen.
type View struct {
	Exists bool
	Stat   zk.Stat  // of the node, if it exists
	Data   []byte   // of the node, of the same moment as Stat; only from Read
	Names  []string // in the node's directory, its own among them; none if there is no directory

	// DirectoryCzxid tells directories of one path apart that were made one after
	// the other; 0 if there is none.
	DirectoryCzxid int64
}

// Look tells whether a node exists, and what else is in its directory. It does not
// see less than what ZooKeeper had acknowledged to anybody when it was called,
// also on a server that lags behind: a transaction goes ahead of the reads. The
// node and the names are read at two moments, both during the call.
//
// It blocks until that is done, ctx ends or the session is lost; while the session
// is SUSPENDED it waits. The errors are as for [Bridge.Multi], without
// OUTCOME_UNKNOWN. An actor must not call it.
func (b *Bridge) Look(ctx context.Context, path string) (View, error) {
	if err := zkconn.CheckPath(path); err != nil {
		return View{}, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	if path == "/" {
		return View{}, fmt.Errorf("zkbridge: %w: path /: the root is in no directory", messages.Reason_INVALID)
	}
	directory, node := zkconn.SplitPath(path)
	return read(ctx, b, path, directory, func(c zkconn.Client, _ readSlots) (View, error) {
		s, err := lookUpNode(c, directory, node)
		return View{Exists: s.exists, Stat: s.stat, Names: s.listing.Children, DirectoryCzxid: s.listing.Czxid}, err
	})
}

// Read is Look that tells the node's data, and nothing of its directory.
func (b *Bridge) Read(ctx context.Context, path string) (View, error) {
	if err := zkconn.CheckPath(path); err != nil {
		return View{}, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	directory, _ := zkconn.SplitPath(path)
	return read(ctx, b, path, directory, func(c zkconn.Client, _ readSlots) (View, error) {
		data, stat, err := c.Get(path)
		if err = zkconn.RightOn("READ", path).Explain(err); err != nil {
			return View{}, err
		}
		return View{Exists: true, Stat: stat, Data: data}, nil
	})
}

// Child is what [Bridge.Children] tells of one node of a directory.
type Child struct {
	Name string
	Data []byte
	Stat zk.Stat
}

// Children reads what is in a directory, in no order; nothing where there is no
// directory. Children that go while it reads are left out. Otherwise it is as
// [Bridge.Look]; it takes a request for each child.
func (b *Bridge) Children(ctx context.Context, directory string) ([]Child, error) {
	if err := zkconn.CheckPath(directory); err != nil {
		return nil, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	return read(ctx, b, directory, directory, func(c zkconn.Client, s readSlots) ([]Child, error) { return readChildren(c, s, directory) })
}

func readChildren(c zkconn.Client, s readSlots, directory string) ([]Child, error) {
	in, err := c.Children(directory)
	if err != nil {
		return nil, err
	}
	all := make([]Child, len(in.Children))
	err = s.each(len(all), func(i int) error {
		name := in.Children[i]
		data, stat, err := c.Get(zkconn.JoinPath(directory, name))
		if err == nil {
			all[i] = Child{name, data, stat}
		} else if zkconn.IsMissing(err) {
			return nil
		}
		return err
	})
	return slices.DeleteFunc(all, func(c Child) bool { return c.Name == "" }), err
}

// readRequest is a call that only reads. It may be done again at any time.
type readRequest[T any] struct {
	call[T]
	path      string // what it is about
	directory string // where nothing older than the call is to be read
	read      func(zkconn.Client, readSlots) (T, error)
}

// read waits for what look gives behind a barrier. The zero value stands for what is
// in a directory that does not exist.
func read[T any](ctx context.Context, b *Bridge, path, directory string, look func(zkconn.Client, readSlots) (T, error)) (T, error) {
	r := &readRequest[T]{newCall[T](b.Session().Epoch), path, directory, look}
	b.ref.Tell(r)
	select {
	case result := <-r.done:
		return result.value, result.err
	case <-ctx.Done():
		b.withdraw(r)
		var none T
		return none, fmt.Errorf("zkbridge: look at %s: %w", path, context.Cause(ctx))
	}
}

func (r *readRequest[T]) start(ep *epoch) {
	ep.singles.addBlocking(func() func() {
		value, err := r.behindBarrier(ep.client, ep.readSlots)
		return func() { r.handleResult(ep, value, err) }
	})
}

func (r *readRequest[T]) behindBarrier(c zkconn.Client, s readSlots) (value T, err error) {
	if err = barrier(c, r.directory); err == nil {
		value, err = r.read(c, s)
	}
	if zkconn.IsMissing(err) { // the directory, and all that was in it
		err = nil
	}
	return value, err
}

// barrier makes later reads see all that was done before it. A read alone could
// miss what is still on its way to this server; a transaction cannot overtake it,
// not even one that only checks, nor one that fails: its error takes the same way.
// (sync is no such barrier on a leader.)
func barrier(c zkconn.Client, directory string) error {
	_, err := zkconn.Multi(c, &zk.CheckVersionRequest{Path: directory, Version: zkconn.AnyVersion})
	return err
}

func (r *readRequest[T]) handleResult(ep *epoch, value T, err error) {
	if _, open := ep.open[r]; !open {
		return // its caller waits no longer
	}
	if err != nil {
		if what, _ := zkconn.Classify(err); what == zkconn.ConnectionLost || what == zkconn.NotSent {
			ep.retryLater(func() { r.start(ep) })
			return
		}
		err = r.failure(err)
	}
	delete(ep.open, r)
	r.deliver(value, err)
}

func (r *readRequest[T]) failure(err error) error {
	_, why := zkconn.Classify(err)
	return fmt.Errorf("zkbridge: look at %s: %w: %w", r.path, why, zkconn.RightOn("READ", r.directory).Explain(err))
}

// fail implements request.
func (r *readRequest[T]) fail(why messages.Reason, detail string) {
	var none T
	r.deliver(none, fmt.Errorf("zkbridge: look at %s: %w", r.path,
		&messages.Failed{Epoch: r.epoch, Reason: why, Detail: detail}))
}

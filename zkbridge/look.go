package zkbridge

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// View is what [Bridge.Look] has seen.
type View struct {
	Exists bool
	Stat   zk.Stat  // of the node, if it exists
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
	if err := CheckPath(path); err != nil {
		return View{}, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	if path == "/" {
		return View{}, fmt.Errorf("zkbridge: %w: path /: the root is in no directory", messages.Reason_INVALID)
	}
	l := &look{call: newCall[View](b.Session().Epoch)}
	l.directory, l.node = splitPath(path)
	b.ref.Tell(l)
	select {
	case r := <-l.done:
		return r.value, r.err
	case <-ctx.Done():
		b.forget(l)
		return View{}, fmt.Errorf("zkbridge: look at %s: %w", path, context.Cause(ctx))
	}
}

// look is a Look that is not answered. It may be done again at any time.
type look struct {
	call[View]
	directory string
	node      string
}

func (l *look) start(ep *epoch) {
	ep.solos.do(func() func() {
		view, err := l.read(ep.client)
		return func() { l.settle(ep, view, err) }
	})
}

func (l *look) read(c client) (View, error) {
	err := barrier(c, l.directory)
	if isMissing(err) {
		return View{}, nil
	}
	if err != nil {
		return View{}, err
	}
	s, err := stat(c, l.directory, l.node)
	if isMissing(err) { // the directory is gone since, and all in it before
		return View{}, nil
	}
	return View{s.exists, s.stat, s.listing.children, s.listing.czxid}, err
}

// barrier makes later reads see all that was done before it. A read alone could
// miss what is still on its way to this server; a transaction cannot overtake it,
// not even one that only checks, nor one that fails: its error takes the same way.
// (sync is no such barrier on a leader.)
func barrier(c client, directory string) error {
	_, err := c.Multi(&zk.CheckVersionRequest{Path: directory, Version: anyVersion})
	return err
}

func (l *look) settle(ep *epoch, view View, err error) {
	if _, open := ep.open[l]; !open {
		return // its caller waits no longer
	}
	if err != nil {
		if what, _ := judge(err); what == lost || what == notSent {
			ep.again(func() { l.start(ep) })
			return
		}
		err = l.failure(err)
	}
	delete(ep.open, l)
	l.deliver(view, err)
}

func (l *look) failure(err error) error {
	_, why := judge(err)
	return fmt.Errorf("zkbridge: look at %s: %w: %w", joinPath(l.directory, l.node), why,
		need{"READ", l.directory}.explain(err))
}

// give implements request.
func (l *look) give(why messages.Reason, detail string) {
	l.deliver(View{}, fmt.Errorf("zkbridge: look at %s: %w", joinPath(l.directory, l.node),
		&messages.Failed{Epoch: l.epoch, Reason: why, Detail: detail}))
}

package writer

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// A node whose request has failed holds a lock until its session ends. The bridge does not end the
// session because of it: that would cost the holders of all other locks theirs, without the margin.
// The writer deletes the node when ZooKeeper lets it.

// rollBack deletes the node of a create that the writer cannot answer because a read has failed
// with err, and then fails the create.
func (w *Writer) rollBack(c *Create, err error) {
	failed := rollbackReply(func(result string) {
		w.epoch.Fail(c, zkconn.ReasonFor(err), "create %s: it was made and %s: %v", c.path(), result,
			zkconn.ExplainRight(w.epoch.Client(), err, "READ", c.msg.GetDirectory()))
	})
	w.Release(NewRelease(reply.To{Recipient: failed}, &messages.ReleaseNode{Directory: c.msg.GetDirectory(), Node: c.node}))
}

// rollbackReply receives the answer to the release of a rollback. The create is open until then.
type rollbackReply func(result string)

func (f rollbackReply) Tell(msg any) {
	if failed, ok := msg.(*messages.Failed); ok {
		f("is left: " + failed.GetDetail())
		return
	}
	f("is deleted again")
}

// onReleaseRefused handles a release that ZooKeeper refuses because of err. The writer does not try
// again to delete a node of another session.
func (w *Writer) onReleaseRefused(r *NodeRelease, err error) {
	if zkconn.IsMissing(err) {
		w.released(r, r.unknownSince == 0) // otherwise an earlier delete may have deleted the node
		return
	}
	w.epoch.Run(func(client zkconn.Client) func() {
		owner, exists, lookupErr := w.lookUpOwner(client, r.path())
		return func() { w.onReleaseLookup(r, err, owner, exists, lookupErr) }
	})
}

// lookUpOwner returns the session of a node, or 0 if it is not this one and not known.
func (w *Writer) lookUpOwner(client zkconn.Client, path string) (owner int64, exists bool, err error) {
	stat, exists, err := client.Exists(path)
	if !errors.Is(err, zk.ErrNoAuth) {
		return stat.EphemeralOwner, exists, err
	}
	own, listErr := client.Ephemerals(path) // takes no right
	switch {
	case listErr != nil:
		return 0, exists, err
	case slices.Contains(own, path):
		owner = w.cfg.Session.ID()
	}
	return owner, exists, nil
}

func (w *Writer) onReleaseLookup(r *NodeRelease, err error, owner int64, exists bool, lookupErr error) {
	_, why := zkconn.Classify(err)
	explained := zkconn.ExplainRight(w.epoch.Client(), err, "DELETE", r.path())
	switch {
	case lookupErr != nil && !isPermanent(lookupErr) && !w.unknownTooLong(&r.unknownSince):
		w.epoch.RetryLater(func() { w.onReleaseRefused(r, err) })
	case lookupErr == nil && !exists:
		w.released(r, false)
	case lookupErr == nil && owner != w.cfg.Session.ID():
		w.epoch.Fail(r, why, "delete %s: %v", r.path(), explained)
	default:
		w.abandonRelease(r, why, explained)
	}
}

// abandonRelease answers a release whose node may exist. The writer goes on deleting the node.
func (w *Writer) abandonRelease(r *NodeRelease, why messages.Reason, err error) {
	w.addOrphan(r.path(), nil, err)
	w.epoch.Fail(r, why, "delete %s: it is tried again while the session lives: %v", r.path(), err)
}

// abandonCreate answers a create, and all parts of its atomic create, whose outcome is unknown. The
// writer deletes nodes that it finds later.
func (w *Writer) abandonCreate(c *Create, err error) {
	why := zkconn.ReasonFor(err)
	err = zkconn.ExplainRight(w.epoch.Client(), err, "READ", c.msg.GetDirectory())
	for _, c := range c.group.creates {
		w.addOrphan(c.path(), c, err)
		w.epoch.Fail(c, why, "create %s may have been executed, and a node that is found later is deleted: %v", c.path(), err)
	}
}

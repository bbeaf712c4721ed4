package zkbridge

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// listRequest is a List that is not answered.
type listRequest struct {
	reply.To
	directory string
	watch     bool
	hangUps   zkconn.HangUps
	watcher   *watches.Watcher // if watch, until the read has set the watch or failed
}

func (l *listRequest) start(ep *epoch) {
	if l.watch { // before the read is sent: the event may come before the answer
		l.watcher = ep.watches.Add(l.Recipient, zkpath.Children(l.directory))
	}
	l.read(ep)
}

func (l *listRequest) read(ep *epoch) {
	ep.reads.Add(func(end func(func())) {
		ep.client.List(l.directory, l.watch, func(listing zkconn.Listing, err error) {
			end(func() { l.finish(ep, listing, err) })
		})
	})
}

func (l *listRequest) finish(ep *epoch, listing zkconn.Listing, err error) {
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		ep.watches.OnRead(l.watcher, err == nil)
		ep.Answer(l, &messages.Listed{Id: l.ID, Epoch: l.Epoch, Children: listing.Children, DirectoryCzxid: listing.Czxid})
		return
	}
	if zkconn.IsTransient(err) {
		if err = ep.retryRead(&l.hangUps, err, func() { l.read(ep) }); err == nil {
			return
		}
	}
	why := zkconn.ReasonFor(err)
	ep.watches.OnRead(l.watcher, false)
	ep.Fail(l, why, "list %s: %v", l.directory, zkconn.ExplainRight(ep.client, err, "READ", l.directory))
}

// retryRead sends a read again that has failed with the connection, or returns why the read fails.
func (ep *epoch) retryRead(h *zkconn.HangUps, err error, read func()) error {
	final := h.Note(err)
	if final == nil {
		ep.RetryAfter(h.Pause(), read)
	}
	return final
}

// watchRequest is a Watch that is not answered: one read for each of its nodes, or one message that
// sets all watches.
type watchRequest struct {
	reply.To
	directory  string
	left       int // nodes that are not read yet
	gone       []string
	data       map[string][]byte // nil if the request does not ask for data
	czxids     map[string]int64  // with the data
	persistent []string
	hangUps    zkconn.HangUps
	err        error // of the last node that could not be watched
}

func (w *watchRequest) start(ep *epoch, nodes []string, since int64) {
	if since != 0 && len(nodes) > 0 {
		w.watchSince(ep, nodes, since)
		return
	}
	w.left = len(nodes)
	for _, node := range nodes {
		// The watcher comes before the read: the event may come before the answer.
		w.readNode(ep, node, ep.watches.Add(w.Recipient, zkpath.Join(w.directory, node)))
	}
	w.finish(ep)
}

// watchSince sets all watches by one message. If the server refuses that, reads of the nodes show
// why.
func (w *watchRequest) watchSince(ep *epoch, nodes []string, since int64) {
	paths, watchers := make([]string, len(nodes)), make([]*watches.Watcher, len(nodes))
	for i, node := range nodes {
		paths[i] = zkpath.Join(w.directory, node)
		watchers[i] = ep.watches.Add(w.Recipient, paths[i])
	}
	ep.reads.Add(func(end func(func())) {
		ep.client.WatchSince(paths, since, func(err error) {
			end(func() {
				for _, watcher := range watchers {
					ep.watches.OnRead(watcher, err == nil)
				}
				switch {
				case err == nil:
					w.finish(ep)
				case zkconn.IsTransient(err) && ep.retryRead(&w.hangUps, err, func() { w.watchSince(ep, nodes, since) }) == nil:
				default:
					w.hangUps = 0 // the reads are other requests
					w.start(ep, nodes, 0)
				}
			})
		})
	})
}

// readNode reads the node's data, for the watch that this sets. An exists would set a watch on a
// missing node, too, which could not be taken back.
func (w *watchRequest) readNode(ep *epoch, node string, watcher *watches.Watcher) {
	ep.reads.Add(func(end func(func())) {
		ep.client.Get(zkpath.Join(w.directory, node), true, func(found zkconn.Content, err error) {
			end(func() { w.onNodeRead(ep, node, watcher, found, err) })
		})
	})
}

func (w *watchRequest) onNodeRead(ep *epoch, node string, watcher *watches.Watcher, found zkconn.Content, err error) {
	path := zkpath.Join(w.directory, node)
	switch {
	case err == nil:
		ep.watches.OnRead(watcher, true)
		if w.data != nil {
			w.data[node], w.czxids[node] = found.Data, found.Stat.Czxid
		}
		if found.Stat.EphemeralOwner == 0 {
			w.persistent = append(w.persistent, node)
		}
	case zkconn.IsTransient(err):
		if err = ep.retryRead(&w.hangUps, err, func() { w.readNode(ep, node, watcher) }); err == nil {
			return
		}
		ep.watches.OnRead(watcher, false)
		w.err = err
	case errors.Is(err, zk.ErrNoNode):
		ep.watches.Remove(w.Recipient, path)
		w.gone = append(w.gone, node)
	default:
		ep.watches.OnRead(watcher, false)
		w.err = zkconn.ExplainRight(ep.client, err, "READ", path)
	}
	w.left--
	w.finish(ep)
}

func (w *watchRequest) finish(ep *epoch) {
	switch {
	case w.left > 0:
	case w.err != nil:
		ep.Fail(w, zkconn.ReasonFor(w.err), "watch nodes of %s: %v", w.directory, w.err)
	default:
		ep.Answer(w, &messages.Watched{Id: w.ID, Epoch: w.Epoch, Gone: w.gone, Data: w.data, Czxids: w.czxids, Persistent: w.persistent})
	}
}

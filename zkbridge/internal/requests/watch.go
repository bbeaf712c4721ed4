package requests

import (
	"cmp"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Watch is a messages.Watch that is not answered: one read for each of its nodes, or one message that
// sets all watches.
type Watch struct {
	reply.To
	msg     *messages.Watch // nothing may write to it
	left    int             // nodes that are not read yet
	answer  *messages.Watched
	hangUps zkconn.HangUps
	err     error // of the last node that could not be watched
}

// NewWatch returns a Watch for the sender of msg, or an error for one that the bridge does not accept.
func NewWatch(to reply.To, msg *messages.Watch) (w *Watch, invalid error) {
	w = &Watch{To: to, msg: msg, answer: &messages.Watched{Id: to.ID, Epoch: to.Epoch}}
	if msg.GetWithData() { // the answer has the czxids of the nodes as well
		w.answer.Data, w.answer.Czxids = map[string][]byte{}, map[string]int64{}
	}
	invalid = watches.CheckComparable(to.Recipient)
	for _, node := range msg.GetNodes() {
		invalid = cmp.Or(invalid, zkpath.CheckNode(msg.GetDirectory(), node))
	}
	return w, invalid
}

// Start starts a Watch that is open.
func (w *Watch) Start(ep InEpoch) {
	if w.msg.GetSince() != 0 && len(w.msg.GetNodes()) > 0 {
		w.watchSince(ep)
		return
	}
	w.readNodes(ep)
}

func (w *Watch) readNodes(ep InEpoch) {
	nodes := w.msg.GetNodes()
	w.left = len(nodes)
	for _, node := range nodes {
		// The watcher comes before the read: the event may come before the answer.
		w.readNode(ep, node, ep.Watches().Add(w.Recipient, zkpath.Join(w.msg.GetDirectory(), node)))
	}
	w.finish(ep)
}

// watchSince sets all watches by one message. If the server refuses that, reads of the nodes show
// why.
func (w *Watch) watchSince(ep InEpoch) {
	nodes := w.msg.GetNodes()
	paths, watchers := make([]string, len(nodes)), make([]*watches.Watcher, len(nodes))
	for i, node := range nodes {
		paths[i] = zkpath.Join(w.msg.GetDirectory(), node)
		watchers[i] = ep.Watches().Add(w.Recipient, paths[i])
	}
	ep.Jobs().Reads.Add(func(end func(func())) {
		ep.Client().WatchSince(paths, w.msg.GetSince(), func(err error) {
			end(func() {
				for _, watcher := range watchers {
					ep.Watches().OnRead(watcher, err == nil)
				}
				switch {
				case err == nil:
					w.finish(ep)
				case retryRead(ep, &w.hangUps, err, func() { w.watchSince(ep) }) == nil:
				default:
					w.hangUps = 0 // the reads are other requests
					w.readNodes(ep)
				}
			})
		})
	})
}

// readNode reads the node's data, for the watch that this sets. An exists would set a watch on a
// missing node, too, which could not be taken back.
func (w *Watch) readNode(ep InEpoch, node string, watcher *watches.Watcher) {
	ep.NodeReads().add(ep, nodeRead{w, node, watcher})
}

func (w *Watch) onNodeRead(ep InEpoch, node string, watcher *watches.Watcher, found zkconn.Content, err error) {
	path := zkpath.Join(w.msg.GetDirectory(), node)
	switch {
	case err == nil:
		ep.Watches().OnRead(watcher, true)
		if w.msg.GetWithData() {
			w.answer.Data[node], w.answer.Czxids[node] = found.Data, found.Stat.Czxid
		}
		if found.Stat.EphemeralOwner == 0 {
			w.answer.Persistent = append(w.answer.Persistent, node)
		}
	case errors.Is(err, zk.ErrNoNode):
		ep.Watches().Remove(w.Recipient, path)
		w.answer.Gone = append(w.answer.Gone, node)
	default:
		if err = retryRead(ep, &w.hangUps, err, func() { w.readNode(ep, node, watcher) }); err == nil {
			return
		}
		ep.Watches().OnRead(watcher, false)
		w.err = zkconn.ExplainRight(ep.Client(), err, "READ", path)
	}
	w.left--
	w.finish(ep)
}

func (w *Watch) finish(ep InEpoch) {
	switch {
	case w.left > 0:
	case w.err != nil:
		ep.Fail(w, zkconn.ReasonFor(w.err), "watch nodes of %s: %v", w.msg.GetDirectory(), w.err)
	default:
		ep.Answer(w, w.answer)
	}
}

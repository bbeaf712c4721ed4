package zkbridge

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// listRequest is a List that is not answered.
type listRequest struct {
	replyTo
	directory string
	watch     bool
	watcher   *watcher // if watch
	czxids    bool
}

func (l *listRequest) start(ep *epoch) {
	if l.watch { // first of all: the event may come before the reply
		l.watcher = ep.watches.add(l.to, zkconn.ChildrenPath(l.directory))
	}
	l.read(ep)
}

func (l *listRequest) read(ep *epoch) {
	ep.reads.add(func(end func(func())) {
		ep.client.List(l.directory, l.watch, func(in zkconn.Listing, err error) {
			end(func() { l.listed(ep, in, err) })
		})
	})
}

// listed goes on with what is in the directory, if that is not all that is asked for.
func (l *listRequest) listed(ep *epoch, in zkconn.Listing, err error) {
	if err != nil || !l.czxids {
		l.finish(ep, in, nil, err)
		return
	}
	ep.watches.onReadDone(l.watcher) // at once: it is in place on this connection
	l.watcher = nil
	ep.reads.addBlocking(func() func() {
		czxids, err := readCzxids(ep.client, ep.readSlots, l.directory, in.Children)
		return func() { l.finish(ep, in, czxids, err) }
	})
}

// readCzxids asks for each child, in a few flights.
func readCzxids(c zkconn.Client, s readSlots, directory string, children []string) ([]int64, error) {
	czxids := make([]int64, len(children))
	err := s.each(len(children), func(i int) error {
		stat, _, err := c.Exists(zkconn.JoinPath(directory, children[i]))
		czxids[i] = stat.Czxid
		return err
	})
	return czxids, err
}

func (l *listRequest) finish(ep *epoch, in zkconn.Listing, czxids []int64, err error) {
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.settleWatch(ep, err)
		ep.answer(l, l.replyTo, &messages.Listed{Id: l.id, Epoch: l.epoch, Children: in.Children,
			DirectoryCzxid: in.Czxid, Czxids: czxids})
		return
	}
	what, why := zkconn.Classify(err)
	if what == zkconn.ConnectionLost || what == zkconn.NotSent {
		ep.retryLater(func() { l.read(ep) })
		return
	}
	l.settleWatch(ep, err)
	ep.fail(l, why, "list %s: %v", l.directory, zkconn.RightOn("READ", l.directory).Explain(err))
}

// settleWatch notes what has become of the watch that was asked for.
func (l *listRequest) settleWatch(ep *epoch, err error) {
	if err == nil {
		ep.watches.onReadDone(l.watcher)
	} else {
		ep.watches.onReadFailed(l.watcher)
	}
}

// watchRequest is a Watch that is not answered: one read for each of its nodes.
type watchRequest struct {
	replyTo
	directory string
	left      int // nodes that are not looked at yet
	gone      []string
	data      map[string][]byte // nil if nobody wants it
	czxids    map[string]int64  // with the data
	reason    messages.Reason   // of the last node that could not be watched
	err       error
}

func (w *watchRequest) start(ep *epoch, nodes []string) {
	w.left = len(nodes)
	for _, node := range nodes {
		// First of all: the event may come before the reply.
		w.readNode(ep, node, ep.watches.add(w.to, zkconn.JoinPath(w.directory, node)))
	}
	w.finish(ep)
}

// readNode reads the node's data, for the watch that this leaves. An exists would
// leave one on a node that is not there, too, and nobody could take it back.
func (w *watchRequest) readNode(ep *epoch, node string, interest *watcher) {
	ep.reads.add(func(end func(func())) {
		ep.client.GetW(zkconn.JoinPath(w.directory, node), func(found zkconn.Content, err error) {
			end(func() { w.onNodeRead(ep, node, interest, found, err) })
		})
	})
}

func (w *watchRequest) onNodeRead(ep *epoch, node string, interest *watcher, found zkconn.Content, err error) {
	path := zkconn.JoinPath(w.directory, node)
	what, why := zkconn.Refused, messages.Reason_REASON_UNSPECIFIED
	if err != nil {
		what, why = zkconn.Classify(err)
	}
	switch {
	case err == nil:
		ep.watches.onReadDone(interest)
		if w.data != nil {
			w.data[node], w.czxids[node] = found.Data, found.Stat.Czxid
		}
	case what == zkconn.ConnectionLost || what == zkconn.NotSent:
		ep.retryLater(func() { w.readNode(ep, node, interest) })
		return
	case errors.Is(err, zk.ErrNoNode):
		ep.watches.remove(w.to, path)
		w.gone = append(w.gone, node)
	default:
		ep.watches.onReadFailed(interest)
		w.reason, w.err = why, zkconn.RightOn("READ", path).Explain(err)
	}
	w.left--
	w.finish(ep)
}

func (w *watchRequest) finish(ep *epoch) {
	switch {
	case w.left > 0:
	case w.err != nil:
		ep.fail(w, w.reason, "watch nodes of %s: %v", w.directory, w.err)
	default:
		ep.answer(w, w.replyTo, &messages.Watched{Id: w.id, Epoch: w.epoch, Gone: w.gone, Data: w.data, Czxids: w.czxids})
	}
}

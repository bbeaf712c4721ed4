package zkbridge

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// list is a List that is not answered.
type list struct {
	asker
	directory string
	watch     bool
	interest  *watcher // if watch
	czxids    bool
}

func (l *list) start(ep *epoch) {
	if l.watch { // first of all: the event may come before the reply
		l.interest = ep.watches.add(l.to, inside(l.directory))
	}
	l.read(ep)
}

func (l *list) read(ep *epoch) {
	ep.reads.add(func(end func(func())) {
		ep.client.List(l.directory, l.watch, func(in listing, err error) {
			end(func() { l.listed(ep, in, err) })
		})
	})
}

// listed goes on with what is in the directory, if that is not all that is asked for.
func (l *list) listed(ep *epoch, in listing, err error) {
	if err != nil || !l.czxids {
		l.done(ep, in, nil, err)
		return
	}
	ep.watches.confirm(l.interest) // at once: it is in place on this connection
	l.interest = nil
	ep.reads.do(func() func() {
		czxids, err := readCzxids(ep.client, ep.slots, l.directory, in.children)
		return func() { l.done(ep, in, czxids, err) }
	})
}

// readCzxids asks for each child, in a few flights.
func readCzxids(c client, s slots, directory string, children []string) ([]int64, error) {
	czxids := make([]int64, len(children))
	err := s.each(len(children), func(i int) error {
		stat, _, err := c.Exists(joinPath(directory, children[i]))
		czxids[i] = stat.Czxid
		return err
	})
	return czxids, err
}

func (l *list) done(ep *epoch, in listing, czxids []int64, err error) {
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.watched(ep, err)
		ep.answer(l, l.asker, &messages.Listed{Id: l.id, Epoch: l.epoch, Children: in.children,
			DirectoryCzxid: in.czxid, Czxids: czxids})
		return
	}
	what, why := judge(err)
	if what == lost || what == notSent {
		ep.again(func() { l.read(ep) })
		return
	}
	l.watched(ep, err)
	ep.fail(l, why, "list %s: %v", l.directory, need{"READ", l.directory}.explain(err))
}

// watched notes what has become of the watch that was asked for.
func (l *list) watched(ep *epoch, err error) {
	if err == nil {
		ep.watches.confirm(l.interest)
	} else {
		ep.watches.giveUp(l.interest)
	}
}

// watch is a Watch that is not answered: one read for each of its nodes.
type watch struct {
	asker
	directory string
	left      int // nodes that are not looked at yet
	gone      []string
	data      map[string][]byte // nil if nobody wants it
	czxids    map[string]int64  // with the data
	why       messages.Reason   // of the last node that could not be watched
	err       error
}

func (w *watch) start(ep *epoch, nodes []string) {
	w.left = len(nodes)
	for _, node := range nodes {
		// First of all: the event may come before the reply.
		w.look(ep, node, ep.watches.add(w.to, joinPath(w.directory, node)))
	}
	w.finish(ep)
}

// look reads the node's data, for the watch that this leaves. An exists would
// leave one on a node that is not there, too, and nobody could take it back.
func (w *watch) look(ep *epoch, node string, interest *watcher) {
	ep.reads.add(func(end func(func())) {
		ep.client.GetW(joinPath(w.directory, node), func(found content, err error) {
			end(func() { w.looked(ep, node, interest, found, err) })
		})
	})
}

func (w *watch) looked(ep *epoch, node string, interest *watcher, found content, err error) {
	path := joinPath(w.directory, node)
	what, why := refused, messages.Reason_REASON_UNSPECIFIED
	if err != nil {
		what, why = judge(err)
	}
	switch {
	case err == nil:
		ep.watches.confirm(interest)
		if w.data != nil {
			w.data[node], w.czxids[node] = found.data, found.stat.Czxid
		}
	case what == lost || what == notSent:
		ep.again(func() { w.look(ep, node, interest) })
		return
	case errors.Is(err, zk.ErrNoNode):
		ep.watches.remove(w.to, path)
		w.gone = append(w.gone, node)
	default:
		ep.watches.giveUp(interest)
		w.why, w.err = why, need{"READ", path}.explain(err)
	}
	w.left--
	w.finish(ep)
}

func (w *watch) finish(ep *epoch) {
	switch {
	case w.left > 0:
	case w.err != nil:
		ep.fail(w, w.why, "watch nodes of %s: %v", w.directory, w.err)
	default:
		ep.answer(w, w.asker, &messages.Watched{Id: w.id, Epoch: w.epoch, Gone: w.gone, Data: w.data, Czxids: w.czxids})
	}
}

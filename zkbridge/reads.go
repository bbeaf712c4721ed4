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
}

func (l *list) start(ep *epoch) {
	ep.reads.do(func() func() {
		inside, err := ep.client.Children(l.directory)
		return func() { l.done(ep, inside, err) }
	})
}

func (l *list) done(ep *epoch, inside listing, err error) {
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		ep.answer(l, l.asker, &messages.Listed{Id: l.id, Epoch: l.epoch, Children: inside.children, DirectoryCzxid: inside.czxid})
		return
	}
	what, why := judge(err)
	if what == lost || what == notSent {
		ep.again(func() { l.start(ep) })
		return
	}
	ep.fail(l, why, "list %s: %v", l.directory, need{"READ", l.directory}.explain(err))
}

// watch is a Watch that is not answered: one read for each of its nodes.
type watch struct {
	asker
	directory string
	left      int // nodes that are not looked at yet
	gone      []string
	why       messages.Reason // of the last node that could not be watched
	err       error
}

func (w *watch) start(ep *epoch, nodes []string) {
	w.left = len(nodes)
	for _, node := range nodes {
		// First of all: the event may come before the reply.
		ep.watches.add(w.to, joinPath(w.directory, node))
		w.look(ep, node)
	}
	w.finish(ep)
}

// look reads the node's data, for the watch that this leaves. An exists would
// leave one on a node that is not there, too, and nobody could take it back.
func (w *watch) look(ep *epoch, node string) {
	ep.reads.do(func() func() {
		err := ep.client.GetW(joinPath(w.directory, node))
		return func() { w.looked(ep, node, err) }
	})
}

func (w *watch) looked(ep *epoch, node string, err error) {
	path := joinPath(w.directory, node)
	what, why := refused, messages.Reason_REASON_UNSPECIFIED
	if err != nil {
		what, why = judge(err)
	}
	switch {
	case err == nil:
		ep.watches.confirm(w.to, path)
	case what == lost || what == notSent:
		ep.again(func() { w.look(ep, node) })
		return
	case errors.Is(err, zk.ErrNoNode):
		ep.watches.remove(w.to, path)
		w.gone = append(w.gone, node)
	default:
		ep.watches.giveUp(w.to, path)
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
		ep.answer(w, w.asker, &messages.Watched{Id: w.id, Epoch: w.epoch, Gone: w.gone})
	}
}

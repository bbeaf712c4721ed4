package requests

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// List is a messages.List that is not answered.
type List struct {
	reply.To
	msg     *messages.List // nothing may write to it
	hangUps zkconn.HangUps
	watcher *watches.Watcher // if watch, until the read has set the watch or failed
}

// NewList returns a List for the sender of msg, or an error for one that the bridge does not accept.
func NewList(to reply.To, msg *messages.List) (l *List, invalid error) {
	invalid = zkpath.Check(msg.GetDirectory())
	if invalid == nil && msg.GetWatch() {
		invalid = watches.CheckComparable(to.Recipient)
	}
	return &List{To: to, msg: msg}, invalid
}

// Start starts a List that is open.
func (l *List) Start(ep InEpoch) {
	if l.msg.GetWatch() { // before the read is sent: the event may come before the answer
		l.watcher = ep.Watches().Add(l.Recipient, zkpath.Children(l.msg.GetDirectory()))
	}
	l.read(ep)
}

func (l *List) read(ep InEpoch) {
	ep.Jobs().Reads.Add(func(end func(func())) {
		ep.Client().List(l.msg.GetDirectory(), l.msg.GetWatch(), func(listing zkconn.Listing, err error) {
			end(func() { l.finish(ep, listing, err) })
		})
	})
}

func (l *List) finish(ep InEpoch, listing zkconn.Listing, err error) {
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		ep.Watches().OnRead(l.watcher, err == nil)
		ep.Answer(l, &messages.Listed{Id: l.ID, Epoch: l.Epoch, Children: listing.Children, DirectoryCzxid: listing.Czxid})
		return
	}
	if err = retryRead(ep, &l.hangUps, err, func() { l.read(ep) }); err == nil {
		return
	}
	why := zkconn.ReasonFor(err)
	ep.Watches().OnRead(l.watcher, false)
	ep.Fail(l, why, "list %s: %v", l.msg.GetDirectory(), zkconn.ExplainRight(ep.Client(), err, "READ", l.msg.GetDirectory()))
}

package zkbridge

import (
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

var _ messages.BridgeHandler[ask.Recipient] = (*core)(nil)

// Subscribe implements messages.BridgeHandler.
func (c *core) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	if from == nil {
		return
	}
	c.subs[from] = struct{}{}
	from.Tell(c.now)
}

// Unsubscribe implements messages.BridgeHandler. It also ends what the sender watches.
func (c *core) Unsubscribe(from ask.Recipient, _ *messages.Unsubscribe) {
	delete(c.subs, from)
	if c.ep != nil {
		c.ep.watches.dropAll(from)
	}
}

// Create implements messages.BridgeHandler.
func (c *core) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	cr := &create{asker: asker{from, msg.GetId(), msg.GetEpoch()}, directory: msg.GetDirectory(),
		prefix: msg.GetPrefix(), data: msg.GetData()}
	if cr.data == nil {
		cr.data = noData
	}
	if err := cr.check(c.cfg.root); err != nil {
		cr.give(messages.Reason_INVALID, err.Error())
		return
	}
	if c.admit(cr, msg.GetEpoch()) {
		c.ep.place(cr)
	}
}

// List implements messages.BridgeHandler.
func (c *core) List(from ask.Recipient, msg *messages.List, _ ask.Reply[*messages.Listed]) {
	l := &list{asker: asker{from, msg.GetId(), msg.GetEpoch()}, directory: msg.GetDirectory()}
	if err := CheckPath(l.directory); err != nil {
		l.give(messages.Reason_INVALID, err.Error())
		return
	}
	if c.admit(l, msg.GetEpoch()) {
		l.start(c.ep)
	}
}

// Watch implements messages.BridgeHandler.
func (c *core) Watch(from ask.Recipient, msg *messages.Watch, _ ask.Reply[*messages.Watched]) {
	w := &watch{asker: asker{from, msg.GetId(), msg.GetEpoch()}, directory: msg.GetDirectory()}
	for _, node := range msg.GetNodes() {
		if err := errors.Join(CheckPath(w.directory), checkName(node), CheckPath(joinPath(w.directory, node))); err != nil {
			w.give(messages.Reason_INVALID, err.Error())
			return
		}
	}
	if c.admit(w, msg.GetEpoch()) {
		w.start(c.ep, msg.GetNodes())
	}
}

// ReleaseNode implements messages.BridgeHandler.
func (c *core) ReleaseNode(from ask.Recipient, msg *messages.ReleaseNode, _ ask.Reply[*messages.NodeReleased]) {
	r := &release{asker: asker{from, msg.GetId(), msg.GetEpoch()}, path: joinPath(msg.GetDirectory(), msg.GetNode())}
	if err := errors.Join(CheckPath(msg.GetDirectory()), checkName(msg.GetNode()), CheckPath(r.path)); err != nil {
		r.give(messages.Reason_INVALID, err.Error())
		return
	}
	if c.admit(r, msg.GetEpoch()) {
		c.ep.outbox.add(write{r: r})
	}
}

// admit takes a request in that is meant for the present session, and answers all
// others at once.
func (c *core) admit(r request, epoch uint64) bool {
	if c.session.epoch != epoch || c.session.state == messages.SessionState_LOST || c.ep == nil {
		r.give(messages.Reason_SESSION_LOST, fmt.Sprintf("the request is for epoch %d; now the session of epoch %d is %v",
			epoch, c.session.epoch, c.session.state))
		return false
	}
	if max := c.cfg.maxOpen; max > 0 && len(c.ep.open) >= max && !mustTake(r) {
		r.give(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests to the bridge wait for an answer; "+
			"Config.MaxOutstanding allows no more", len(c.ep.open)))
		return false
	}
	c.ep.open[r] = struct{}{}
	return true
}

// mustTake tells that a request would leave a node behind if it was not served.
func mustTake(r request) bool {
	_, ok := r.(*release)
	return ok
}

// Refuse implements host.Actor: it answers what comes too late.
func (c *core) Refuse(from ask.Recipient, msg any) {
	if msg, ok := msg.(caller); ok {
		msg.give(messages.Reason_CLOSED, c.now.GetDetail())
		return
	}
	messages.DispatchBridge(refuser{c.now}, from, msg, from)
}

// refuser answers for a bridge that has ended.
type refuser struct{ now *messages.SessionChanged }

func (r refuser) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	if from != nil {
		from.Tell(r.now)
	}
}

func (refuser) Unsubscribe(ask.Recipient, *messages.Unsubscribe) {}

func (r refuser) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	r.refuse(from, msg)
}

func (r refuser) List(from ask.Recipient, msg *messages.List, _ ask.Reply[*messages.Listed]) {
	r.refuse(from, msg)
}

func (r refuser) Watch(from ask.Recipient, msg *messages.Watch, _ ask.Reply[*messages.Watched]) {
	r.refuse(from, msg)
}

func (r refuser) ReleaseNode(from ask.Recipient, msg *messages.ReleaseNode, _ ask.Reply[*messages.NodeReleased]) {
	r.refuse(from, msg)
}

func (r refuser) refuse(from ask.Recipient, msg interface {
	GetId() uint64
	GetEpoch() uint64
}) {
	asker{from, msg.GetId(), msg.GetEpoch()}.give(messages.Reason_CLOSED, r.now.GetDetail())
}

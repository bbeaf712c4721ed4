package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

var _ messages.BridgeHandler[ask.Recipient] = (*core)(nil)

// Subscribe implements messages.BridgeHandler.
func (c *core) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	switch {
	case from == nil:
		return
	case !watchable(from):
		asker{to: from, log: c.cfg.log}.give(messages.Reason_INVALID, notWatchable(from))
		return
	}
	if _, known := c.subs[from]; !known {
		c.subbed++
		c.subs[from] = c.subbed
	}
	c.tell(from)
}

// Unsubscribe implements messages.BridgeHandler. It also ends what the sender watches.
func (c *core) Unsubscribe(from ask.Recipient, _ *messages.Unsubscribe) {
	if !watchable(from) {
		return // it has neither
	}
	delete(c.subs, from)
	if c.ep != nil {
		c.ep.watches.dropAll(from)
	}
}

// Create implements messages.BridgeHandler.
func (c *core) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	cr := c.cfg.newCreate(c.askerOf(from, msg), msg)
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
	l := &list{asker: c.askerOf(from, msg), directory: msg.GetDirectory(),
		watch: msg.GetWatch(), czxids: msg.GetWithCzxids()}
	if err := CheckPath(l.directory); err != nil {
		l.give(messages.Reason_INVALID, err.Error())
		return
	}
	if l.watch && !watchable(from) {
		l.give(messages.Reason_INVALID, notWatchable(from))
		return
	}
	if c.admit(l, msg.GetEpoch()) {
		l.start(c.ep)
	}
}

// Watch implements messages.BridgeHandler.
func (c *core) Watch(from ask.Recipient, msg *messages.Watch, _ ask.Reply[*messages.Watched]) {
	w := &watch{asker: c.askerOf(from, msg), directory: msg.GetDirectory()}
	if msg.GetWithData() {
		w.data, w.czxids = map[string][]byte{}, map[string]int64{}
	}
	if !watchable(from) {
		w.give(messages.Reason_INVALID, notWatchable(from))
		return
	}
	for _, node := range msg.GetNodes() {
		if err := checkNode(w.directory, node); err != nil {
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
	r := &release{asker: c.askerOf(from, msg),
		path: joinPath(msg.GetDirectory(), msg.GetNode()), relaxed: msg.GetRelaxed()}
	if err := checkNode(msg.GetDirectory(), msg.GetNode()); err != nil {
		r.give(messages.Reason_INVALID, err.Error())
		return
	}
	if c.admit(r, msg.GetEpoch()) {
		c.ep.outbox.add(write{r: r})
	}
}

// Transact implements messages.BridgeHandler.
func (c *core) Transact(from ask.Recipient, msg *messages.Transact, _ ask.Reply[*messages.Transacted]) {
	a := c.askerOf(from, msg)
	ops, err := opsOf(msg.GetOps())
	if err == nil && msg.GetDirectory() != "" {
		err = CheckPath(msg.GetDirectory())
	}
	if err == nil {
		ops, err = copyOps(ops, c.cfg.acl, c.cfg.root)
	}
	if err != nil {
		a.give(messages.Reason_INVALID, err.Error())
		return
	}
	t := &transaction{epoch: a.epoch, ops: ops, within: msg.GetDirectory(), deliver: func(results []Result, err error) { c.transacted(a, results, err) }}
	if c.admit(t, a.epoch) {
		t.start(c.ep)
	}
}

// admit takes a request in that is meant for the present session, and answers all
// others at once.
func (c *core) admit(r request, epoch uint64) bool {
	n := 1
	if mustTake(r) {
		n = 0
	}
	if why, detail := c.obstacle(epoch, n); why != 0 {
		r.give(why, detail)
		return false
	}
	c.ep.admit(r)
	return true
}

// obstacle is why n more requests for a session cannot be taken in, if they cannot.
func (c *core) obstacle(epoch uint64, n int) (why messages.Reason, detail string) {
	if c.session.epoch != epoch || c.session.state == messages.SessionState_LOST || c.ep == nil {
		return messages.Reason_SESSION_LOST, fmt.Sprintf("the request is for epoch %d; now the session of epoch %d is %v",
			epoch, c.session.epoch, c.session.state)
	}
	if max := c.cfg.maxOpen; max > 0 && n > 0 && len(c.ep.open)+n > max {
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests to the bridge wait for an answer; "+
			"Config.MaxOutstanding allows no more than %d", len(c.ep.open), max)
	}
	return 0, ""
}

// mustTake tells that a request would leave a node behind if it was not served.
func mustTake(r request) bool {
	_, ok := r.(*release)
	return ok
}

// Refuse implements host.Actor: it answers what comes too late.
func (c *core) Refuse(from ask.Recipient, msg any) {
	if msg, ok := msg.(request); ok { // a caller's, or createAll
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

func (r refuser) Transact(from ask.Recipient, msg *messages.Transact, _ ask.Reply[*messages.Transacted]) {
	r.refuse(from, msg)
}

func (r refuser) refuse(from ask.Recipient, msg interface {
	GetId() uint64
	GetEpoch() uint64
}) {
	asker{from, msg.GetId(), msg.GetEpoch(), nil}.give(messages.Reason_CLOSED, r.now.GetDetail())
}

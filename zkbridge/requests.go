package zkbridge

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

var _ messages.BridgeHandler[ask.Recipient] = (*bridgeActor)(nil)

// Subscribe implements messages.BridgeHandler.
func (a *bridgeActor) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	if from == nil {
		return
	}
	if err := watches.CheckComparable(from); err != nil {
		reply.To{Recipient: from, Log: a.cfg.Log}.Fail(messages.Reason_INVALID, err.Error())
		return
	}
	if _, known := a.subs[from]; !known {
		a.subscriptions++
		a.subs[from] = a.subscriptions
	}
	a.tellState(from)
}

// Unsubscribe implements messages.BridgeHandler. It also ends the sender's watches.
func (a *bridgeActor) Unsubscribe(from ask.Recipient, msg *messages.Unsubscribe) {
	if a.epoch != nil {
		for _, directory := range msg.GetDirectories() {
			a.epoch.Unwatch(directory)
		}
	}
	if watches.CheckComparable(from) != nil {
		return // it has neither
	}
	delete(a.subs, from)
	if a.epoch != nil {
		a.epoch.Watches().DropAll(from)
	}
}

// ReleaseNode implements messages.BridgeHandler.
func (a *bridgeActor) ReleaseNode(from ask.Recipient, msg *messages.ReleaseNode, _ ask.Reply[*messages.NodeReleased]) {
	r := writer.NewRelease(a.replyTo(from, msg), msg)
	if a.accept(r, msg.GetEpoch(), zkpath.CheckNode(msg.GetDirectory(), msg.GetNode())) {
		a.epoch.Writer.Release(r)
	}
}

// List implements messages.BridgeHandler.
func (a *bridgeActor) List(from ask.Recipient, msg *messages.List, _ ask.Reply[*messages.Listed]) {
	l, invalid := requests.NewList(a.replyTo(from, msg), msg)
	if a.accept(l, msg.GetEpoch(), invalid) {
		l.Start(a.epoch)
	}
}

// Watch implements messages.BridgeHandler. A read of each node sets its watch, or one message those
// of all. The event of the watch wakes the sender (package watches).
func (a *bridgeActor) Watch(from ask.Recipient, msg *messages.Watch, _ ask.Reply[*messages.Watched]) {
	w, invalid := requests.NewWatch(a.replyTo(from, msg), msg)
	if a.accept(w, msg.GetEpoch(), invalid) {
		w.Start(a.epoch)
	}
}

// Transact implements messages.BridgeHandler.
func (a *bridgeActor) Transact(from ask.Recipient, msg *messages.Transact, _ ask.Reply[*messages.Transacted]) {
	to := a.replyTo(from, msg)
	ops, err := opsOfMessage(msg.GetOps())
	if err == nil {
		err = checkTransaction(ops, msg.GetDirectory(), a.cfg)
	}
	if err != nil {
		to.Fail(messages.Reason_INVALID, err.Error())
		return
	}
	done := &messages.Transacted{Id: to.ID, Epoch: to.Epoch}
	t := &transaction{Call: requests.Call{Epoch: to.Epoch}, ops: ops, within: msg.GetDirectory(), deliver: func(results []Result, err error) { answerTransact(to, done, results, err) }}
	if a.accept(t, to.Epoch, nil) {
		startTransact(a.epoch, t, done)
	}
}

// replyTo returns where to send the answer to a message.
func (a *bridgeActor) replyTo(from ask.Recipient, msg requestMessage) reply.To {
	return reply.To{Recipient: from, ID: msg.GetId(), Epoch: msg.GetEpoch(), Log: a.cfg.Log}
}

// accept opens a request for the present session, and reports whether it has. It answers all other
// requests at once. invalid is what is wrong with the request, or nil.
func (a *bridgeActor) accept(r reply.Request, epoch uint64, invalid error) bool {
	n := 1
	if onlyDeletes(r) {
		n = 0 // it is never over the limit: its nodes would stay, and hold a lock
	}
	if !a.mayOpen(r, epoch, n, invalid) {
		return false
	}
	a.epoch.Add(r)
	return true
}

// onlyDeletes reports whether a request does nothing but delete nodes.
func onlyDeletes(r reply.Request) bool {
	switch r := r.(type) {
	case *writer.NodeRelease:
		return true
	case *transaction:
		return !slices.ContainsFunc(r.ops, func(op zkconn.Op) bool { return op.Kind != zkconn.OpDelete })
	}
	return false
}

// mayOpen reports whether the bridge can open requests for the present session, of which n count for
// the limit. Otherwise it answers r at once.
func (a *bridgeActor) mayOpen(r reply.Failer, epoch uint64, n int, invalid error) bool {
	switch max := a.cfg.maxOutstanding; {
	case invalid != nil:
		r.Fail(messages.Reason_INVALID, invalid.Error())
	case a.session.Epoch != epoch || a.session.State == messages.SessionState_LOST || a.epoch == nil:
		r.Fail(messages.Reason_SESSION_LOST, fmt.Sprintf("the request is for epoch %d; now the session of epoch %d is %v",
			epoch, a.session.Epoch, a.session.State))
	case max > 0 && n > 0 && a.outstanding()+n > max:
		r.Fail(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests to the bridge wait for an answer; "+
			"Config.MaxOutstanding allows no more than %d", a.outstanding(), max))
	default:
		return true
	}
	return false
}

// requestMessage is a message that the bridge answers.
type requestMessage interface {
	GetId() uint64
	GetEpoch() uint64
}

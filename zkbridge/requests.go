package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
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
	r := writer.NewRelease(a.cfg.replyTo(from, msg), msg)
	if a.accept(r, msg.GetEpoch(), zkpath.CheckNode(msg.GetDirectory(), msg.GetNode())) {
		a.epoch.Writer.Release(r)
	}
}

// List implements messages.BridgeHandler.
func (a *bridgeActor) List(from ask.Recipient, msg *messages.List, _ ask.Reply[*messages.Listed]) {
	l, invalid := requests.NewList(a.cfg.replyTo(from, msg), msg)
	if a.accept(l, msg.GetEpoch(), invalid) {
		l.Start(a.epoch)
	}
}

// Watch implements messages.BridgeHandler. One message sets all watches if the sender names the zxid since
// which it has to hear of changes; otherwise a read of each node sets its watch. The event of the watch wakes
// the sender (package watches).
func (a *bridgeActor) Watch(from ask.Recipient, msg *messages.Watch, _ ask.Reply[*messages.Watched]) {
	w, invalid := requests.NewWatch(a.cfg.replyTo(from, msg), msg)
	if a.accept(w, msg.GetEpoch(), invalid) {
		w.Start(a.epoch)
	}
}

// Transact implements messages.BridgeHandler.
func (a *bridgeActor) Transact(from ask.Recipient, msg *messages.Transact, _ ask.Reply[*messages.Transacted]) {
	to := a.cfg.replyTo(from, msg)
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

// call starts a request of a goroutine, or answers why it does not.
func (a *bridgeActor) call(r requests.Waited) {
	if c := r.Called(); c.FailFast && a.session.State == messages.SessionState_SUSPENDED {
		r.Fail(messages.Reason_DISCONNECTED, a.bridge.outageText())
	} else if a.accept(r, c.Epoch, nil) { // otherwise accept has answered Failed
		r.Start(a.epoch)
	}
}

package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// lockActor is the actor of a lock with one directory, whose queue its owners stand in. It passes
// the requests of its lock.Actor on to the directory, and the answers back. (Its directories embed a pointer to
// the same lock.Actor: what both have is found in the nearer one, the Actor.)
type lockActor struct {
	lock.Actor
	directories
}

func newLock(e *manager.Entry) host.Actor {
	l := &lockActor{}
	l.Init(e, l)
	l.directories.Actor = &l.Actor
	l.queue = l.newDirectory(e.Path, e.Recipe, l.answer)
	l.beginSession(l.SessionChanged)
	return l
}

// ---- from the owner to the bridge

// Acquire implements lock.Behavior.
func (l *lockActor) Acquire(r *lock.Request, msg *messages.Acquire) {
	l.queue.acquire(incoming(r, msg), nil)
}

// Cancel implements lock.Behavior.
func (l *lockActor) Cancel(r *lock.Request, reason messages.Reason) {
	l.queue.cancel(r.ID, r.TakenBack(), requests.Reason(reason))
}

// NodesOf returns the node of a request, for manager.OpenRequest.
func (l *lockActor) NodesOf(id requests.ID) []string { return []string{l.queue.state.NodeOf(id)} }

// Release implements lock.Behavior.
func (l *lockActor) Release(r *lock.Request) { l.queue.release(r.ID) }

// ReceiveOther implements lock.Behavior.
func (l *lockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		l.acquireMember(from, msg)
	case delayElapsed:
		feed(&l.queue, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

// ---- from the bridge to the owner

// answer performs an effect of the directory for an owner.
func (l *lockActor) answer(news requests.Effect) {
	switch {
	case news.Kind == requests.Grant:
		granted := l.grantedAlone(l.Path, news.Node, news.Token)
		l.Grant(l.Request(news.ID), granted, granted.Step)
		return
	case news.Kind == requests.Refuse && news.Reason == requests.WouldDeadlock:
		l.Detail = l.deadlockDetail(l.Request(news.ID).OwnerName())
	}
	l.Answer(&news)
}

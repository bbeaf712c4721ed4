package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Close implements shell.Behavior.
func (l *lockActor) Close(failed bool) {
	stopTimer(l.delayTimer)
	l.bridge.SendUnsubscribe(&messages.Unsubscribe{}, l.Self)
	if failed {
		for serial, node := range l.state.Nodes() {
			l.releaseNode(serial, node, false)
		}
		return
	}
	feed(l, lockqueue.Close{Reason: requests.Closed})
	l.cleaningUp = l.state.Ending() && l.Manager.StartCleanup(l.Entry)
}

// ReceiveAfterStop implements shell.Behavior. The actor deletes its nodes by the bridge's answers, also a node whose
// creation is answered now.
func (l *lockActor) ReceiveAfterStop(from ask.Recipient, msg any) {
	if query, is := msg.(shell.NodesQuery); is { // also behind the deletion of the last node
		query.Reply <- l.nodePaths()
	} else if l.cleaningUp {
		messages.DispatchBridgeClient(l, from, msg, from)
		if !l.state.Ending() {
			l.cleaningUp = false
			l.Manager.CleanedUp(l.Entry, l.nodePaths()...)
		}
	} else if created, ok := msg.(*messages.Created); ok {
		l.releaseNode(created.Id, created.Node, false)
	}
}

// nodePaths returns the paths of the nodes that may exist.
func (l *lockActor) nodePaths() (paths []string) {
	for _, node := range l.state.Nodes() {
		paths = append(paths, l.nodePath(node))
	}
	return paths
}

// noteUndeleted notes the node of a contender that leaves, if the node may remain because of the
// failure.
func (l *lockActor) noteUndeleted(msg *messages.Failed) {
	node, made := l.state.Node(msg.Id)
	lost := msg.Reason == messages.Reason_SESSION_LOST
	if node != "" && (made && msg.Reason != messages.Reason_CLOSED || lost) {
		l.Manager.NoteUndeleted(l.nodePath(node))
	}
}

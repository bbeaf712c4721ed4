package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

func (l *lockActor) close() { feed(l, lockqueue.Close{Reason: requests.Closed}) }

func (l *lockActor) ending() bool { return l.state.Ending() }

func (l *lockActor) nodes() []string { return slices.Collect(maps.Values(l.state.Nodes())) }

// Close implements shell.Behavior.
func (l *lockActor) Close(failed bool) {
	stopTimer(l.delayTimer)
	l.unsubscribe()
	if failed {
		for serial, node := range l.state.Nodes() {
			l.releaseNode(serial, node, false)
		}
		return
	}
	l.close()
	l.cleanUp()
}

// ReceiveAfterStop implements shell.Behavior. A node whose creation is answered now is deleted.
func (l *lockActor) ReceiveAfterStop(from ask.Recipient, msg any) {
	_, query := msg.(shell.NodesQuery) // also behind the deletion of the last node
	if l.cleaningUp || query {
		l.bridgeClient.ReceiveAfterStop(from, msg)
	} else if created, ok := msg.(*messages.Created); ok {
		l.releaseNode(created.Id, created.Node, false)
	}
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

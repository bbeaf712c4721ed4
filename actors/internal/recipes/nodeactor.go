package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// nodeActor is the actor that embeds a bridgeClient, which calls it back: its state machine decides
// what follows from the session, and at the end.
type nodeActor interface {
	shell.Behavior
	messages.BridgeClientHandler[ask.Recipient]
	// onSession handles a change of the session.
	onSession(epoch uint64, state lockqueue.SessionState)
	// close ends all requests and deletes all nodes.
	close()
	// ending reports whether nodes are to be deleted yet.
	ending() bool
	// nodes returns the names of the nodes.
	nodes() []string
}

func (b *bridgeClient) init(e *shell.Entry, a nodeActor) {
	b.Init(e, a)
	b.actor, b.bridge = a, e.Manager.Bridge.Ref()
	b.bridge.SendSubscribe(&messages.Subscribe{}, e.Self)
}

// ---- effects

func (b *bridgeClient) list(serial uint64, withCzxids, watch bool) {
	b.bridge.SendList(&messages.List{Id: serial, Epoch: b.epoch, Directory: b.Path, Watch: watch, WithCzxids: withCzxids}, b.Self)
}

// transact has all operations done or none.
func (b *bridgeClient) transact(serial uint64, ops ...*messages.Op) {
	b.bridge.SendTransact(&messages.Transact{Id: serial, Epoch: b.epoch, Ops: ops}, b.Self)
}

// releaseNode deletes a node. relaxed reports that the lock was handed on within this process.
func (b *bridgeClient) releaseNode(serial uint64, node string, relaxed bool) {
	b.bridge.SendReleaseNode(&messages.ReleaseNode{Id: serial, Epoch: b.epoch, Directory: b.Path, Node: node, Relaxed: relaxed}, b.Self)
}

func (b *bridgeClient) grantedMessage(node string, generation uint64, czxid int64, step uint32) *messages.Granted {
	return &messages.Granted{Path: b.Path, Node: node, Generation: generation, Czxid: czxid, Step: step,
		SessionId: b.session, Epoch: b.epoch}
}

func (b *bridgeClient) nodePath(node string) string { return b.Path + "/" + node }

// ---- the session

func (b *bridgeClient) setSession(msg *messages.SessionChanged) {
	b.epoch, b.lost, b.session = msg.Epoch, false, msg.SessionId
}

// Epoch implements shell.Behavior.
func (b *bridgeClient) Epoch() uint64 {
	if b.lost {
		return 0
	}
	return b.epoch
}

// SessionOverdue implements shell.Behavior.
func (b *bridgeClient) SessionOverdue() {
	b.lost = true
	b.actor.onSession(b.epoch, lockqueue.Lost)
}

// ---- the end

// unsubscribe ends the messages about the session.
func (b *bridgeClient) unsubscribe() { b.bridge.SendUnsubscribe(&messages.Unsubscribe{}, b.Self) }

// cleanUp begins to wait for the deletion of the nodes, if there are any.
func (b *bridgeClient) cleanUp() {
	b.cleaningUp = b.actor.ending() && b.Manager.StartCleanup(b.Entry)
}

// ReceiveAfterStop implements shell.Behavior. The bridge's answers go on to the
// actor, which deletes the nodes by them, also without a manager that waits for it.
func (b *bridgeClient) ReceiveAfterStop(from ask.Recipient, msg any) {
	if q, ok := msg.(shell.NodesQuery); ok {
		q.Reply <- b.nodePaths()
		return
	}
	messages.DispatchBridgeClient(b.actor, from, msg, from)
	if b.cleaningUp && !b.actor.ending() {
		b.cleaningUp = false
		b.Manager.CleanedUp(b.Entry, b.nodePaths()...)
	}
}

func (b *bridgeClient) nodePaths() []string {
	var paths []string
	for _, node := range b.actor.nodes() {
		paths = append(paths, b.nodePath(node))
	}
	return paths
}

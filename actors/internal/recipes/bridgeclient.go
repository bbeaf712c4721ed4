package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// bridgeClient is the part of an actor with nodes of its own: it asks the bridge for them, and
// follows the session that they live in.
type bridgeClient struct {
	shell.Shell
	machine  nodeMachine
	bridge   messages.BridgeRef
	epoch    uint64 // of the session; 0 before the first
	lost     bool   // the session of epoch is lost
	session  int64
	draining bool // the actor has stopped, and its nodes are not deleted yet
}

// nodeMachine is the actor around a bridgeClient: its state machine decides what follows from the
// session and at the end.
type nodeMachine interface {
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

func (b *bridgeClient) init(e *shell.Entry, m nodeMachine) {
	b.Init(e, m)
	b.machine, b.bridge = m, e.Manager.Bridge.Ref()
	b.bridge.SendSubscribe(&messages.Subscribe{}, e.Self)
}

// ---- the session

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
	b.machine.onSession(b.epoch, lockqueue.Lost)
}

// SessionChanged implements messages.BridgeClientHandler.
func (b *bridgeClient) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	if b.lost && msg.Epoch == b.epoch && msg.State != messages.SessionState_ENDED {
		return // a lost session does not come back
	}
	b.Detail = msg.Detail
	switch msg.State {
	case messages.SessionState_CONNECTED:
		b.setSession(msg)
		b.machine.onSession(msg.Epoch, lockqueue.Connected)
	case messages.SessionState_SUSPENDED:
		b.setSession(msg) // this may be the first message about the session
		b.machine.onSession(msg.Epoch, lockqueue.Suspended)
		b.SuspendHolders()
	case messages.SessionState_LOST:
		b.lost = true
		b.machine.onSession(msg.Epoch, lockqueue.Lost)
	case messages.SessionState_ENDED:
		b.machine.close()
	}
}

func (b *bridgeClient) setSession(msg *messages.SessionChanged) {
	b.epoch, b.lost, b.session = msg.Epoch, false, msg.SessionId
}

// ---- effects

func (b *bridgeClient) list(serial uint64, withCzxids, watch bool) {
	b.bridge.SendList(&messages.List{Id: serial, Epoch: b.epoch, Directory: b.Path, Watch: watch, WithCzxids: withCzxids}, b.Self)
}

func (b *bridgeClient) watch(serial uint64, nodes []string, withData bool) {
	b.bridge.SendWatch(&messages.Watch{Id: serial, Epoch: b.epoch, Directory: b.Path, Nodes: nodes, WithData: withData}, b.Self)
}

// transact has all operations done or none. within is a directory that is made if it is missing,
// or "".
func (b *bridgeClient) transact(serial uint64, within string, ops ...*messages.Op) {
	b.bridge.SendTransact(&messages.Transact{Id: serial, Epoch: b.epoch, Directory: within, Ops: ops}, b.Self)
}

// releaseNode deletes a node. relaxed reports that no contender waits for the deletion.
func (b *bridgeClient) releaseNode(serial uint64, node string, relaxed bool) {
	b.bridge.SendReleaseNode(&messages.ReleaseNode{Id: serial, Epoch: b.epoch, Directory: b.Path, Node: node, Relaxed: relaxed}, b.Self)
}

func (b *bridgeClient) granted(node string, generation uint64, czxid int64, step uint32) *messages.Granted {
	return &messages.Granted{Path: b.Path, Node: node, Generation: generation, Czxid: czxid, Step: step,
		SessionId: b.session, Epoch: b.epoch}
}

func (b *bridgeClient) nodePath(node string) string { return b.Path + "/" + node }

// ---- the end

// unsubscribe ends the messages about the session.
func (b *bridgeClient) unsubscribe() { b.bridge.SendUnsubscribe(&messages.Unsubscribe{}, b.Self) }

// drain begins to wait for the deletion of the nodes, if there are any.
func (b *bridgeClient) drain() {
	b.draining = b.machine.ending() && b.Manager.StartDraining(b.Entry)
}

// receiveDraining handles a message to a stopped actor whose nodes are not deleted yet. The
// bridge's answers go on to the machine, which deletes the nodes by them.
func (b *bridgeClient) receiveDraining(from ask.Recipient, msg any) {
	if q, ok := msg.(shell.NodesQuery); ok {
		q.Reply <- b.nodePaths()
		return
	}
	messages.DispatchBridgeClient(b.machine, from, msg, from)
}

func (b *bridgeClient) nodePaths() []string {
	var paths []string
	for _, node := range b.machine.nodes() {
		paths = append(paths, b.nodePath(node))
	}
	return paths
}

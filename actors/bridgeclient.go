package actors

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// bridgeClient is a desk whose actor has nodes of its own: it asks the bridge for them, and
// follows the session that they live in.
type bridgeClient struct {
	requestTable
	sessionHandler sessionHandler
	bridge         messages.BridgeRef
	epoch          uint64
	lost           bool // the session of epoch is lost
	session        int64
}

// sessionHandler is the actor of a bridged, where it decides on what follows from the session's
// changes.
type sessionHandler interface {
	requestHandler
	onSession(epoch uint64, state lockqueue.SessionState)
	onClosed()
}

func newBridgeClient(r *actorEntry, f sessionHandler) bridgeClient {
	b := bridgeClient{requestTable: newRequestTable(r, f), sessionHandler: f, bridge: r.manager.bridge}
	b.bridge.SendSubscribe(&messages.Subscribe{}, r.self)
	return b
}

// checkSession comes before all else: nothing is granted in a session that must be taken
// for lost by now. In a process that was paused the bridge may not have come to say so,
// and its timer not have fired. (If it says so now, it also says why.)
func (b *bridgeClient) checkSession(msg any) {
	switch msg := msg.(type) {
	case *messages.SessionChanged:
		if msg.State == messages.SessionState_LOST {
			return
		}
	case connectionLost: // the bridge says why, soon
		return
	}
	if b.epoch == 0 || b.lost || !b.manager.zk.Lost(b.epoch) {
		return
	}
	b.lost, b.detail = true, sessionOverdue
	b.sessionHandler.onSession(b.epoch, lockqueue.Lost)
}

// SessionChanged implements messages.BridgeClientHandler.
func (b *bridgeClient) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	if b.lost && msg.Epoch == b.epoch && msg.State != messages.SessionState_SHUT {
		return // it does not come back
	}
	b.detail = msg.Detail
	switch msg.State {
	case messages.SessionState_CONNECTED:
		b.setSession(msg)
		b.sessionHandler.onSession(msg.Epoch, lockqueue.Connected)
	case messages.SessionState_SUSPENDED:
		b.setSession(msg) // perhaps the first that is heard of it
		b.sessionHandler.onSession(msg.Epoch, lockqueue.Suspended)
		b.suspend()
	case messages.SessionState_LOST:
		b.lost = true
		b.sessionHandler.onSession(msg.Epoch, lockqueue.Lost)
	case messages.SessionState_SHUT:
		b.sessionHandler.onClosed()
	}
}

func (b *bridgeClient) setSession(msg *messages.SessionChanged) {
	b.epoch, b.lost, b.session = msg.Epoch, false, msg.SessionId
}

// ---- what effects ask for

func (b *bridgeClient) list(serial uint64, withCzxids, watch bool) {
	b.bridge.SendList(&messages.List{Id: serial, Epoch: b.epoch, Directory: b.path, Watch: watch, WithCzxids: withCzxids}, b.self)
}

func (b *bridgeClient) watch(serial uint64, nodes []string, withData bool) {
	b.bridge.SendWatch(&messages.Watch{Id: serial, Epoch: b.epoch, Directory: b.path, Nodes: nodes, WithData: withData}, b.self)
}

// transact has all of the operations done or none. within is a directory that is made if
// it is missing, or "".
func (b *bridgeClient) transact(serial uint64, within string, ops ...*messages.Op) {
	b.bridge.SendTransact(&messages.Transact{Id: serial, Epoch: b.epoch, Directory: within, Ops: ops}, b.self)
}

// releaseNode deletes a node; relaxed is for one that nobody waits for.
func (b *bridgeClient) releaseNode(serial uint64, node string, relaxed bool) {
	b.bridge.SendReleaseNode(&messages.ReleaseNode{Id: serial, Epoch: b.epoch, Directory: b.path, Node: node, Relaxed: relaxed}, b.self)
}

func (b *bridgeClient) granted(node string, generation uint64, czxid int64, step uint32) *messages.Granted {
	return &messages.Granted{Path: b.path, Node: node, Generation: generation, Czxid: czxid, Step: step,
		SessionId: b.session, Epoch: b.epoch}
}

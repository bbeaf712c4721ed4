package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// bridgeClient is embedded by an actor that has nodes of its own (lockActor). It
// asks the bridge for them, and follows the session that they live in.
type bridgeClient struct {
	shell.Shell
	actor      nodeActor
	bridge     messages.BridgeRef
	epoch      uint64 // of the session; 0 before the first
	lost       bool   // the session of epoch is lost
	session    int64  // ZooKeeper's number of the session, for the grants
	cleaningUp bool   // the actor has stopped, and its nodes are not deleted yet
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
		b.actor.onSession(msg.Epoch, lockqueue.Connected)
	case messages.SessionState_SUSPENDED:
		b.setSession(msg) // this may be the first message about the session
		b.actor.onSession(msg.Epoch, lockqueue.Suspended)
	case messages.SessionState_LOST:
		b.lost = true
		b.actor.onSession(msg.Epoch, lockqueue.Lost)
	case messages.SessionState_ENDED: // the bridge is closed
		b.actor.close()
	}
}

// watch performs WatchNodes; nodeactor.go has the other requests to the bridge.
func (b *bridgeClient) watch(serial uint64, nodes []string, withData bool, since int64) {
	b.bridge.SendWatch(&messages.Watch{Id: serial, Epoch: b.epoch, Directory: b.Path, Nodes: nodes, WithData: withData, Since: since}, b.Self)
}

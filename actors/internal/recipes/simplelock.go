package recipes

import (
	"crypto/rand"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/internal/simplelock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// simpleLockActor is the actor of this process's contender for a lock of the simple form. It
// turns messages into calls of its simplelock.Contender, and performs what that asks for. Its one
// owner is the actor of a local queue.
type simpleLockActor struct {
	bridgeClient
	messages.IgnoreBridgeClient[ask.Recipient]
	state      *simplelock.Contender
	othersLeft bool // the node of another process went since the last grant
}

func newSimpleLock(e *shell.Entry) host.Actor {
	var in [8]byte
	rand.Read(in[:])
	lockNode, shared := simpleLockNode, len(e.Recipe.Kinds) > 1
	if shared {
		lockNode = simpleWriterNode
	}
	s := &simpleLockActor{}
	s.state = simplelock.New(s, lockNode, shared, in)
	s.init(e, s)
	return s
}

// ---- messages of the owner

// Acquire implements shell.Behavior.
func (s *simpleLockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	s.state.Acquire(incoming(r, msg))
}

// Cancel implements shell.Behavior.
func (s *simpleLockActor) Cancel(r *shell.Request, reason messages.Reason) {
	s.state.Cancel(r.ID, requests.Reason(reason))
}

// Release implements shell.Behavior.
func (s *simpleLockActor) Release(r *shell.Request) { s.state.Release(r.ID) }

// ReceiveOther implements shell.Behavior.
func (s *simpleLockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	known := messages.DispatchBridgeClient(s, from, msg, from)
	invariants.Check(s.state)
	return known
}

// Idle implements shell.Behavior.
func (s *simpleLockActor) Idle() bool { return s.state.Idle() }

// Tick implements shell.Behavior.
func (s *simpleLockActor) Tick(bool) { s.state.Tick() }

// ---- messages of the bridge

// SessionChanged implements messages.BridgeClientHandler.
func (s *simpleLockActor) SessionChanged(from ask.Recipient, msg *messages.SessionChanged) {
	s.bridgeClient.SessionChanged(from, msg)
}

// Transacted implements messages.BridgeClientHandler.
func (s *simpleLockActor) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	s.state.Transacted(msg.Id, simplelock.Transaction{Done: msg.Outcome == messages.Transacted_DONE,
		Missing: msg.Outcome == messages.Transacted_NO_NODE, Generation: msg.Generation, Czxid: msg.Czxid,
		Reason: requests.Reason(msg.NoGeneration)})
}

// Listed implements messages.BridgeClientHandler.
func (s *simpleLockActor) Listed(_ ask.Recipient, msg *messages.Listed) {
	s.state.Listed(msg.Id, msg.Children)
}

// Watched implements messages.BridgeClientHandler.
func (s *simpleLockActor) Watched(_ ask.Recipient, msg *messages.Watched) {
	s.reportPersistent(msg.Persistent)
	s.state.Watched(msg.Id, simplelock.NodesRead{Gone: msg.Gone, Data: msg.Data, Czxids: msg.Czxids})
}

// Wake implements messages.BridgeClientHandler.
func (s *simpleLockActor) Wake(_ ask.Recipient, msg *messages.Wake) {
	s.othersLeft = true
	s.state.Wake(msg.Epoch, msg.Node)
}

// Failed implements messages.BridgeClientHandler.
func (s *simpleLockActor) Failed(_ ask.Recipient, msg *messages.Failed) {
	s.Detail = msg.Detail
	s.state.Failed(msg.Id, requests.Reason(msg.Reason))
}

func (s *simpleLockActor) onSession(epoch uint64, state lockqueue.SessionState) {
	s.state.Session(epoch, state != lockqueue.Lost)
}

// ---- what the contender asks for: simpleLockActor is a simplelock.ContenderActor

// CreateNodes implements simplelock.ContenderActor.
func (s *simpleLockActor) CreateNodes(serial uint64, lockNode, ownerNode string, data []byte) {
	var ops []*messages.Op
	if lockNode != "" {
		ops = append(ops, &messages.Op{Kind: messages.Op_CREATE, Path: s.nodePath(lockNode), Data: []byte(ownerNode), Ephemeral: true})
	}
	owner := s.nodePath(ownerNode)
	s.transact(serial, s.Path, append(ops, &messages.Op{Kind: messages.Op_CREATE, Path: owner, Data: data, Ephemeral: true},
		&messages.Op{Kind: messages.Op_SET, Path: owner, Data: data})...) // its answer has the czxid
}

// DeleteNodes implements simplelock.ContenderActor.
func (s *simpleLockActor) DeleteNodes(serial uint64, nodes []string) {
	var ops []*messages.Op
	for _, node := range nodes {
		ops = append(ops, &messages.Op{Kind: messages.Op_DELETE, Path: s.nodePath(node)})
	}
	s.transact(serial, "", ops...)
}

// WatchNodes implements simplelock.ContenderActor.
func (s *simpleLockActor) WatchNodes(serial uint64, nodes []string) { s.watch(serial, nodes, true, 0) }

// ListDirectory implements simplelock.ContenderActor.
func (s *simpleLockActor) ListDirectory(serial uint64, watch bool) { s.list(serial, false, watch) }

// GrantBy implements simplelock.ContenderActor.
func (s *simpleLockActor) GrantBy(id requests.ID, ownerNode string, generation uint64, czxid int64) {
	if s.othersLeft {
		s.othersLeft = false
		s.CountHandOff(false)
	}
	s.Grant(s.Request(id), s.grantedMessage(ownerNode, generation, czxid, 0))
}

// ---- the end

func (s *simpleLockActor) close() { s.state.Close(requests.Closed) }

func (s *simpleLockActor) ending() bool { return s.state.Ending() }

func (s *simpleLockActor) nodes() []string { return s.state.Nodes() }

// Close implements shell.Behavior.
func (s *simpleLockActor) Close(failed bool) {
	s.unsubscribe()
	if failed {
		s.state.Forget()
	}
	s.close()
	s.cleanUp()
}

package recipes

import (
	"crypto/rand"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/internal/simplelock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// simpleLockActor is the actor of this process's contender for a lock of the simple form. It
// turns messages into events of its simplelock.Contender, and performs the effects. Its one
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
	s := &simpleLockActor{state: simplelock.New(lockNode, shared, in)}
	s.init(e, s)
	return s
}

// ---- messages of the owner

// Acquire implements shell.Behavior.
func (s *simpleLockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	simpleStep(s, simplelock.Acquire{ID: r.ID, Kind: r.Kind, Try: msg.Try, NotifyContended: msg.NotifyContended, Data: msg.Data})
}

// Cancel implements shell.Behavior.
func (s *simpleLockActor) Cancel(r *shell.Request, reason messages.Reason) {
	simpleStep(s, simplelock.Cancel{ID: r.ID, Reason: requests.Reason(reason)})
}

// Release implements shell.Behavior.
func (s *simpleLockActor) Release(r *shell.Request) { simpleStep(s, simplelock.Release{ID: r.ID}) }

// ReceiveOther implements shell.Behavior.
func (s *simpleLockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	return messages.DispatchBridgeClient(s, from, msg, from)
}

// Idle implements shell.Behavior.
func (s *simpleLockActor) Idle() bool { return s.state.Idle() }

// Tick implements shell.Behavior.
func (s *simpleLockActor) Tick(bool) { simpleStep(s, simplelock.Tick{}) }

// ---- messages of the bridge

// SessionChanged implements messages.BridgeClientHandler.
func (s *simpleLockActor) SessionChanged(from ask.Recipient, msg *messages.SessionChanged) {
	s.bridgeClient.SessionChanged(from, msg)
}

// Transacted implements messages.BridgeClientHandler.
func (s *simpleLockActor) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	simpleStep(s, simplelock.Transacted{Serial: msg.Id, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op,
		Missing: msg.Outcome == messages.Transacted_NO_NODE, Generation: msg.Generation, Czxid: msg.Czxid,
		Reason: requests.Reason(msg.NoGeneration)})
}

// Listed implements messages.BridgeClientHandler.
func (s *simpleLockActor) Listed(_ ask.Recipient, msg *messages.Listed) {
	simpleStep(s, simplelock.Listed{Serial: msg.Id, Children: msg.Children})
}

// Watched implements messages.BridgeClientHandler.
func (s *simpleLockActor) Watched(_ ask.Recipient, msg *messages.Watched) {
	simpleStep(s, simplelock.Watched{Serial: msg.Id, Gone: msg.Gone, Data: msg.Data, Czxids: msg.Czxids})
}

// NodeReleased implements messages.BridgeClientHandler.
func (s *simpleLockActor) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	simpleStep(s, simplelock.Deleted{Serial: msg.Id})
}

// Wake implements messages.BridgeClientHandler.
func (s *simpleLockActor) Wake(_ ask.Recipient, msg *messages.Wake) {
	s.othersLeft = true
	simpleStep(s, simplelock.Wake{Epoch: msg.Epoch, Node: msg.Node})
}

// Failed implements messages.BridgeClientHandler.
func (s *simpleLockActor) Failed(_ ask.Recipient, msg *messages.Failed) {
	s.Detail = msg.Detail
	simpleStep(s, simplelock.Failed{Serial: msg.Id, Reason: requests.Reason(msg.Reason)})
}

func (s *simpleLockActor) onSession(epoch uint64, state lockqueue.SessionState) {
	simpleStep(s, simplelock.Session{Epoch: epoch, Live: state != lockqueue.Lost})
}

// ---- effects

// simpleStep feeds an event to the state and performs the effects.
func simpleStep[E simplelock.Event](s *simpleLockActor, e E) {
	for _, f := range simplelock.Step(s.state, e) {
		s.perform(f)
	}
}

func (s *simpleLockActor) perform(f simplelock.Effect) {
	owner, lock := s.nodePath(f.OwnerNode), s.nodePath(f.LockNode)
	switch f.Kind {
	case simplelock.CreateNodes:
		ops := []*messages.Op{
			{Kind: messages.Op_CREATE, Path: owner, Data: f.Data, Ephemeral: true},
			{Kind: messages.Op_SET, Path: owner, Data: f.Data}, // its answer has the czxid
		}
		if f.LockNode != "" {
			ops = append([]*messages.Op{{Kind: messages.Op_CREATE, Path: lock, Data: []byte(f.OwnerNode), Ephemeral: true}}, ops...)
		}
		s.transact(f.Serial, s.Path, ops...)
	case simplelock.WriteOwnerNode:
		s.transact(f.Serial, "", &messages.Op{Kind: messages.Op_SET, Path: owner, Data: f.Data})
	case simplelock.DeleteNodes:
		ops := []*messages.Op{{Kind: messages.Op_DELETE, Path: owner}}
		if f.LockNode != "" {
			ops = append(ops, &messages.Op{Kind: messages.Op_DELETE, Path: lock})
		}
		s.transact(f.Serial, "", ops...)
	case simplelock.DeleteLockNode:
		s.releaseNode(f.Serial, f.LockNode, false)
	case simplelock.WatchNodes:
		s.watch(f.Serial, f.Nodes, f.WithData)
	case simplelock.ListDirectory:
		s.list(f.Serial, false, f.Watch)
	default:
		if r := s.Request(f.ID); r != nil { // otherwise the Shell has answered the request of a failed actor
			s.answer(r, f)
		}
	}
}

// answer performs the effects for the owner.
func (s *simpleLockActor) answer(r *shell.Request, f simplelock.Effect) {
	switch f.Kind {
	case simplelock.Grant:
		if s.othersLeft {
			s.othersLeft = false
			s.CountHandOff(false)
		}
		s.Grant(r, s.granted(f.OwnerNode, f.Generation, f.Czxid, 0))
	case simplelock.Refuse:
		s.RefuseRequest(r, messages.Reason(f.Reason))
	case simplelock.Lose:
		s.Lose(r, messages.Reason(f.Reason))
	case simplelock.ConfirmRelease:
		s.ConfirmRelease(r, 0)
	case simplelock.NotifyContended:
		s.NotifyContended(r)
	}
}

// ---- the end

func (s *simpleLockActor) close() { simpleStep(s, simplelock.Close{Reason: requests.Closed}) }

func (s *simpleLockActor) ending() bool { return s.state.Ending() }

func (s *simpleLockActor) nodes() []string { return s.state.Nodes() }

// Close implements shell.Behavior.
func (s *simpleLockActor) Close(bool) {
	s.unsubscribe()
	s.close()
	s.drain()
}

// ReceiveAfterStop implements shell.Behavior. The answers of the bridge lead on to the deletion
// of the nodes, also without a manager that waits for it.
func (s *simpleLockActor) ReceiveAfterStop(from ask.Recipient, msg any) {
	s.receiveDraining(from, msg)
	if s.draining && !s.ending() {
		s.draining = false
		s.Manager.Drained(s.Entry, s.nodePaths()...)
	}
}

package actors

import (
	"crypto/rand"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/simplelock"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// simpleLock is the actor of this process's contender for a lock of the simple form. It turns
// messages into events for its simplelock.Contender, and performs the effects by telling the
// bridge and its one owner, a lender.
type simpleLock struct {
	bridgeClient
	state    *simplelock.Contender
	draining bool // it has stopped, and has nodes yet; see departures
}

func newSimpleLock(r *actorEntry) host.Actor {
	var in [8]byte
	rand.Read(in[:])
	gate, shared := simpleLockNode, len(r.recipe.kinds) > 1
	if shared {
		gate = simpleWriterNode
	}
	s := &simpleLock{state: simplelock.New(gate, shared, in)}
	s.bridgeClient = newBridgeClient(r, s)
	return s
}

// Receive implements host.Actor.
func (s *simpleLock) Receive(from ask.Recipient, msg any) {
	if s.retired {
		s.Refuse(from, msg)
		return
	}
	s.checkSession(msg)
	switch msg := msg.(type) {
	case waitExpired:
		s.onWaitExpired(msg.id)
	case tick:
		if !s.onTick(s.state.Idle() && s.requests.Len() == 0) {
			try(s, simplelock.Tick{})
		}
	default:
		if !messages.DispatchLock(s, from, msg, from) && !messages.DispatchBridgeClient(s, from, msg, from) {
			s.receiveOther(msg)
		}
	}
}

// ---- said by the owner, to the desk

func (s *simpleLock) acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire) {
	try(s, simplelock.Acquire{ID: id, Kind: kind, Try: msg.Try, NotifyContended: msg.NotifyContended, Data: msg.Data})
}

func (s *simpleLock) cancel(id requests.ID, why requests.Reason) {
	try(s, simplelock.Cancel{ID: id, Reason: why})
}

func (s *simpleLock) release(id requests.ID) { try(s, simplelock.Release{ID: id}) }

// ---- said by the bridge

// Transacted implements messages.BridgeClientHandler.
func (s *simpleLock) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	try(s, simplelock.Transacted{Serial: msg.Id, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op,
		Missing: msg.Outcome == messages.Transacted_NO_NODE, Generation: msg.Generation, Czxid: msg.Czxid,
		Reason: requests.Reason(msg.NoGeneration)})
}

// Listed implements messages.BridgeClientHandler.
func (s *simpleLock) Listed(_ ask.Recipient, msg *messages.Listed) {
	try(s, simplelock.Listed{Serial: msg.Id, Children: msg.Children})
}

// Watched implements messages.BridgeClientHandler.
func (s *simpleLock) Watched(_ ask.Recipient, msg *messages.Watched) {
	try(s, simplelock.Watched{Serial: msg.Id, Gone: msg.Gone, Data: msg.Data, Czxids: msg.Czxids})
}

// NodeReleased implements messages.BridgeClientHandler.
func (s *simpleLock) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	try(s, simplelock.Deleted{Serial: msg.Id})
}

// Wake implements messages.BridgeClientHandler.
func (s *simpleLock) Wake(_ ask.Recipient, msg *messages.Wake) {
	try(s, simplelock.Wake{Epoch: msg.Epoch, Node: msg.Node})
}

// Failed implements messages.BridgeClientHandler.
func (s *simpleLock) Failed(_ ask.Recipient, msg *messages.Failed) {
	s.detail = msg.Detail
	try(s, simplelock.Failed{Serial: msg.Id, Reason: requests.Reason(msg.Reason)})
}

// Created implements messages.BridgeClientHandler. It asks for none.
func (*simpleLock) Created(ask.Recipient, *messages.Created) {}

func (s *simpleLock) onSession(epoch uint64, state lockqueue.SessionState) {
	try(s, simplelock.Session{Epoch: epoch, Live: state != lockqueue.Lost})
}

func (s *simpleLock) onClosed() { try(s, simplelock.Close{Reason: requests.Closed}) }

// ---- performing

// try is for every event.
func try[E simplelock.Event](s *simpleLock, e E) {
	for _, f := range simplelock.Step(s.state, e) {
		s.perform(f)
	}
	s.detail = ""
}

func (s *simpleLock) perform(f simplelock.Effect) {
	mark, gate := s.path+"/"+f.OwnerNode, s.path+"/"+f.LockNode
	switch f.Kind {
	case simplelock.CreateNodes:
		ops := []*messages.Op{
			{Kind: messages.Op_CREATE, Path: mark, Data: f.Data, Ephemeral: true},
			{Kind: messages.Op_SET, Path: mark, Data: f.Data}, // tells the czxid
		}
		if f.LockNode != "" {
			ops = append([]*messages.Op{{Kind: messages.Op_CREATE, Path: gate, Data: []byte(f.OwnerNode), Ephemeral: true}}, ops...)
		}
		s.transact(f.Serial, s.path, ops...)
	case simplelock.WriteOwnerNode:
		s.transact(f.Serial, "", &messages.Op{Kind: messages.Op_SET, Path: mark, Data: f.Data})
	case simplelock.DeleteNodes:
		ops := []*messages.Op{{Kind: messages.Op_DELETE, Path: mark}}
		if f.LockNode != "" {
			ops = append(ops, &messages.Op{Kind: messages.Op_DELETE, Path: gate})
		}
		s.transact(f.Serial, "", ops...)
	case simplelock.WatchNodes:
		s.watch(f.Serial, f.Nodes, f.WithData)
	case simplelock.ListDirectory:
		s.list(f.Serial, false, f.Watch)
	case simplelock.DeleteLockNode:
		s.releaseNode(f.Serial, f.LockNode, false)
	case simplelock.Grant:
		s.grant(s.requests.At(f.ID), s.granted(f.OwnerNode, f.Generation, f.Czxid, 0))
	default:
		s.answer(f)
	}
}

// answer performs the effects that are for the owner.
func (s *simpleLock) answer(f simplelock.Effect) {
	switch r := s.requests.At(f.ID); {
	case r == nil: // giveUp has told its owner
	case f.Kind == simplelock.Refuse:
		s.refuse(r, messages.Reason(f.Reason))
	case f.Kind == simplelock.Lose:
		s.lose(r, messages.Reason(f.Reason))
	case f.Kind == simplelock.ConfirmRelease:
		s.released(r, 0)
	case f.Kind == simplelock.NotifyContended:
		s.contended(r)
	}
}

// ---- the end

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Its owner gets an answer, and no node is left behind: see Refuse.
func (s *simpleLock) Stopped(failure any) {
	defer s.manager.running.Done()
	s.markStopped(failure)
	s.bridge.SendUnsubscribe(&messages.Unsubscribe{}, s.self)
	if failure != nil {
		s.failAll()
	}
	try(s, simplelock.Close{Reason: requests.Closed})
	if s.draining = s.manager.draining.sessionGoesOn && s.state.Ending(); s.draining {
		s.manager.startDraining(s.actorEntry)
	}
}

// Refuse implements host.Actor: it answers what comes after the end. What the bridge
// says then leads on to the end of the nodes.
func (s *simpleLock) Refuse(from ask.Recipient, msg any) {
	if q, ok := msg.(nodesQuery); ok {
		q.reply <- s.nodePaths(s.state.Nodes())
		return
	}
	if !s.refuseAfterStop(from, msg) {
		messages.DispatchBridgeClient(s, from, msg, from)
	}
	if s.draining && !s.state.Ending() {
		s.draining = false
		s.manager.onDrained(s.actorEntry, s.nodePaths(s.state.Nodes())...)
	}
}

package actors

import (
	"crypto/rand"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// simple is the actor of this process's contender for a lock of the simple form. It turns
// messages into events for its queue.Simple, and performs the effects by telling the
// bridge and its one owner, a lender.
type simple struct {
	bridged
	state   *queue.Simple
	departs bool // it has stopped, and has nodes yet; see departures
}

func newSimple(r *resident) host.Actor {
	var in queue.Incarnation
	rand.Read(in[:])
	gate, shared := simpleGate, len(r.recipe.kinds) > 1
	if shared {
		gate = simpleWriter
	}
	s := &simple{state: queue.NewSimple(gate, shared, in)}
	s.bridged = newBridged(r, s)
	return s
}

// Receive implements host.Actor.
func (s *simple) Receive(from ask.Recipient, msg any) {
	if s.retired {
		s.Refuse(from, msg)
		return
	}
	s.checkSession(msg)
	switch msg := msg.(type) {
	case expired:
		s.expire(msg.id)
	case tick:
		if !s.rest(s.state.Idle() && s.requests.Len() == 0) {
			try(s, queue.Tick{})
		}
	default:
		if !messages.DispatchLock(s, from, msg, from) && !messages.DispatchBridgeClient(s, from, msg, from) {
			s.unknown(msg)
		}
	}
}

// ---- said by the owner, to the desk

func (s *simple) acquire(e queue.Acquire) { try(s, e) }

func (s *simple) cancel(e queue.Cancel) { try(s, e) }

func (s *simple) release(e queue.Release) { try(s, e) }

// ---- said by the bridge

// Transacted implements messages.BridgeClientHandler.
func (s *simple) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	try(s, queue.Transacted{Serial: msg.Id, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op,
		Missing: msg.Outcome == messages.Transacted_NO_NODE, Generation: msg.Generation, Czxid: msg.Czxid,
		Why: queue.Why(msg.NoGeneration)})
}

// Listed implements messages.BridgeClientHandler.
func (s *simple) Listed(_ ask.Recipient, msg *messages.Listed) {
	try(s, queue.Listed{Epoch: msg.Epoch, Serial: msg.Id, Children: msg.Children})
}

// Watched implements messages.BridgeClientHandler.
func (s *simple) Watched(_ ask.Recipient, msg *messages.Watched) {
	try(s, queue.Watched{Epoch: msg.Epoch, Serial: msg.Id, Gone: msg.Gone, Data: msg.Data, Czxids: msg.Czxids})
}

// NodeReleased implements messages.BridgeClientHandler.
func (s *simple) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	try(s, queue.Deleted{Serial: msg.Id})
}

// Wake implements messages.BridgeClientHandler.
func (s *simple) Wake(_ ask.Recipient, msg *messages.Wake) {
	try(s, queue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}

// Failed implements messages.BridgeClientHandler.
func (s *simple) Failed(_ ask.Recipient, msg *messages.Failed) {
	s.detail = msg.Detail
	try(s, queue.Failed{Epoch: msg.Epoch, Serial: msg.Id, Why: queue.Why(msg.Reason)})
}

// Created implements messages.BridgeClientHandler. It asks for none.
func (*simple) Created(ask.Recipient, *messages.Created) {}

func (s *simple) follow(e queue.Session) { try(s, e) }

func (s *simple) close(e queue.Close) { try(s, e) }

// ---- performing

// try is for every event.
func try[E queue.SimpleEvent](s *simple, e E) {
	for _, f := range queue.TrySimple(s.state, e) {
		s.perform(f)
	}
	s.detail = ""
}

func (s *simple) perform(f queue.Effect) {
	mark, gate := s.path+"/"+f.Node, s.path+"/"+f.Beside
	switch f.Do {
	case queue.DoTake:
		ops := []*messages.Op{
			{Kind: messages.Op_CREATE, Path: mark, Data: f.Data, Ephemeral: true},
			{Kind: messages.Op_SET, Path: mark, Data: f.Data}, // tells the czxid
		}
		if f.Beside != "" {
			ops = append([]*messages.Op{{Kind: messages.Op_CREATE, Path: gate, Data: []byte(f.Node), Ephemeral: true}}, ops...)
		}
		s.transact(f.Serial, s.path, ops...)
	case queue.DoProve:
		s.transact(f.Serial, "", &messages.Op{Kind: messages.Op_SET, Path: mark, Data: f.Data})
	case queue.DoLeave:
		ops := []*messages.Op{{Kind: messages.Op_DELETE, Path: mark}}
		if f.Beside != "" {
			ops = append(ops, &messages.Op{Kind: messages.Op_DELETE, Path: gate})
		}
		s.transact(f.Serial, "", ops...)
	case queue.DoWatch:
		s.watch(f)
	case queue.DoList:
		s.list(f)
	case queue.DoDelete:
		s.releaseNode(f.Serial, f.Node, false)
	case queue.DoGrant:
		s.grant(s.requests.At(f.ID), s.granted(f))
	default:
		if s.requests.At(f.ID) != nil { // else giveUp has told its owner
			s.answer(f)
		}
	}
}

// ---- the end

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Its owner gets an answer, and no node is left behind: see Refuse.
func (s *simple) Stopped(failure any) {
	defer s.manager.running.Done()
	s.stop(failure)
	s.bridge.SendUnsubscribe(&messages.Unsubscribe{}, s.self)
	if failure != nil {
		s.giveUp()
	}
	try(s, queue.Close{Why: queue.Closed})
	if s.departs = s.manager.departures.lasting && s.state.Ending(); s.departs {
		s.manager.depart(s.resident)
	}
}

// Refuse implements host.Actor: it answers what comes after the end. What the bridge
// says then leads on to the end of the nodes.
func (s *simple) Refuse(from ask.Recipient, msg any) {
	if q, ok := msg.(inventory); ok {
		q.reply <- s.paths(s.state.Nodes())
		return
	}
	if !s.tooLate(from, msg) {
		messages.DispatchBridgeClient(s, from, msg, from)
	}
	if s.departs && !s.state.Ending() {
		s.departs = false
		s.manager.departed(s.resident, s.paths(s.state.Nodes())...)
	}
}

package recipes

import (
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// localQueueActor is the actor of a lock whose node the owners of this process share. It turns
// messages into calls of its localqueue.Queue, and performs what that asks for on the owners and on
// the directory, whose only owner it is.
type localQueueActor struct {
	lock.Actor
	directories
	turn        turn
	below       below
	config      manager.LocalQueueConfig
	state       *localqueue.Queue
	ownerBelow  string              // the owner that it is to the directory; empty for a rule without downgrades
	holds       []*messages.Granted // the nodes of the node hold: one, or two after a downgrade
	budgetTimer *time.Timer         // of the node hold
	idleTimer   *time.Timer
	mayHandOff  bool // a grant of the call in hand hands the lock on

	losing []*lock.Request // whose grants end by the call in hand, which is the loss of one of two nodes
	shut   bool            // what is for the directory waits: owners may believe in a lost grant
	behind []deferred      // what waits: releases of the lost node hold, and one request
}

// deferred is a call of the directory that waits.
type deferred struct {
	serial uint64 // of the request that it makes; 0 if it makes none
	call   func()
}

func newLocalQueue(e *manager.Entry) host.Actor {
	config := *e.Recipe.LocalQueue
	l := &localQueueActor{config: config}
	l.state = localqueue.New(l, e.Recipe.Rule, uint32(min(config.Grants, 1<<30)))
	l.Init(e, l)
	l.directories.Actor = &l.Actor
	l.first = l.newDirectory(e.Path, e.Recipe, &l.below)
	l.below = below{turn: &l.turn, directory: &l.first, machine: l}
	if e.Recipe.Rule.Downgrades() {
		l.ownerBelow = "the local queue"
	}
	l.beginSession(l)
	return l
}

// Messages of a local queue to itself.
type (
	// budgetOver: the node hold of the serial number has lasted as long as it may.
	budgetOver struct{ serial uint64 }
	// idleOver: the node hold may have been unused for long.
	idleOver struct{}
)

// ---- messages of owners

// Acquire implements lock.Behavior.
func (l *localQueueActor) Acquire(r *lock.Request, msg *messages.Acquire) {
	l.state.Acquire(incoming(r, msg))
	l.turn.finish()
}

// Cancel implements lock.Behavior.
func (l *localQueueActor) Cancel(r *lock.Request, reason messages.Reason) {
	l.mayHandOff = true
	l.state.Cancel(r.ID, requests.Reason(reason))
	l.mayHandOff = false
	l.turn.finish()
}

// Release implements lock.Behavior.
func (l *localQueueActor) Release(r *lock.Request) {
	l.mayHandOff = true
	l.state.Release(r.ID)
	l.mayHandOff = false
	l.turn.finish()
}

// ReceiveOther implements lock.Behavior.
func (l *localQueueActor) ReceiveOther(from ask.Recipient, msg any) bool {
	defer l.turn.finish()
	switch msg := msg.(type) {
	case budgetOver:
		l.state.TimeBudgetUsed(msg.serial)
	case idleOver:
		l.state.IdleTimedOut()
	case delayElapsed:
		feed(&l.first, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

// Tick implements lock.Behavior.
func (l *localQueueActor) Tick(quiet bool) {
	l.directories.Tick(quiet)
	l.turn.finish()
	if quiet {
		l.below.releaseMemory()
	}
}

// Idle implements lock.Behavior.
func (l *localQueueActor) Idle() bool { return l.state.Idle() && l.directories.Idle() }

// SessionOverdue implements lock.Behavior.
func (l *localQueueActor) SessionOverdue() {
	l.directories.SessionOverdue()
	l.turn.finish()
}

// ---- what the directory answers: localQueueActor is the machine above it

// nodeGranted implements machine. It ignores grants of withdrawn requests, whose release is due.
func (l *localQueueActor) nodeGranted(serial uint64, node string, token requests.Token) {
	if !slices.Contains(l.state.NodeHolds(), serial) {
		return
	}
	if self := l.Self; len(l.holds) == 0 {
		stopTimer(l.budgetTimer)
		l.budgetTimer = time.AfterFunc(l.config.Time, func() { self.Tell(budgetOver{serial}) })
	}
	by := l.granted(l.Path, node, token)
	by.RequestId = serial
	l.holds = append(l.holds, by)
	l.state.NodeGranted(serial, token)
	invariants.Check(l.state)
}

// nodeRefused implements machine. A withdrawn request is refused, too.
func (l *localQueueActor) nodeRefused(serial uint64, why requests.Reason) {
	l.state.NodeRefused(serial, why)
}

// nodeLost implements machine. The loss of one of two nodes ends the grants by the other one, too.
// That is given up once no owner believes in them.
func (l *localQueueActor) nodeLost(serial uint64, why requests.Reason) {
	first := !l.shut && len(l.holds) > 1
	l.shut = l.shut || first
	l.state.NodeLost(serial, why)
	if first && !l.AwaitDisbelief(l.losing, func() { l.reopen(); l.turn.finish() }) {
		l.reopen()
	}
	l.losing = nil
}

// Lose implements localqueue.QueueActor.
func (l *localQueueActor) Lose(id requests.ID, why requests.Reason) {
	l.losing = append(l.losing, l.Request(id))
	l.Actor.Lose(id, why)
}

// toDirectory makes a call of the directory now, or at reopen.
func (l *localQueueActor) toDirectory(d deferred) {
	if l.shut {
		l.behind = append(l.behind, d)
		return
	}
	d.call()
}

func (l *localQueueActor) reopen() {
	l.shut = false
	for _, d := range l.behind {
		d.call()
	}
	l.behind = nil
}

// nodeReleased implements machine. It is not called: a local queue cancels its nodes.
func (l *localQueueActor) nodeReleased(uint64) {}

// nodeRevoked implements machine.
func (l *localQueueActor) nodeRevoked(serial uint64) { l.state.NodeRevoked(serial) }

// nodeContended implements machine.
func (l *localQueueActor) nodeContended(serial uint64) { l.state.NodeContended(serial) }

// ---- what the state asks for: localQueueActor is a localqueue.QueueActor

// AcquireNode implements localqueue.QueueActor.
func (l *localQueueActor) AcquireNode(serial uint64, kind queue.Kind, try bool, data []byte) {
	l.toDirectory(deferred{serial, func() {
		l.below.acquire(serial, requests.Incoming{Owner: l.ownerBelow, Kind: kind, Permits: 1, Try: try,
			Data: l.Manager.NodeData(data, ""), NotifyContended: true}, nil)
	}})
}

// ReleaseNode implements localqueue.QueueActor.
func (l *localQueueActor) ReleaseNode(serial uint64) {
	l.holds = slices.DeleteFunc(l.holds, func(g *messages.Granted) bool { return g.RequestId == serial })
	if i := slices.IndexFunc(l.behind, func(d deferred) bool { return d.serial == serial }); i >= 0 {
		l.behind = slices.Delete(l.behind, i, i+1) // the directory has not heard of the request
		return
	}
	l.toDirectory(deferred{call: func() { l.below.cancel(serial) }})
}

// GrantBy implements localqueue.QueueActor.
func (l *localQueueActor) GrantBy(id requests.ID, serial uint64, token requests.Token) {
	if l.mayHandOff {
		l.mayHandOff = false
		l.CountHandOff(true)
	}
	by := l.holds[0]
	if by.RequestId != serial {
		by = l.holds[1]
	}
	r := l.Request(id)
	if r.Acquisition() != nil {
		l.GrantStep(r, by, token.Step)
		return
	}
	l.Grant(r, l.granted(l.Path, by.Node, token))
}

// StartIdleTimer implements localqueue.QueueActor.
func (l *localQueueActor) StartIdleTimer() {
	if l.idleTimer == nil {
		self := l.Self
		l.idleTimer = time.AfterFunc(l.config.Linger, func() { self.Tell(idleOver{}) })
		return
	}
	l.idleTimer.Reset(l.config.Linger)
}

// ---- the end

// Close implements lock.Behavior.
func (l *localQueueActor) Close(failed bool) {
	l.EndAll(requests.Closed)
	stopTimer(l.budgetTimer)
	stopTimer(l.idleTimer)
	l.turn.over = true
	l.directories.Close(failed)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

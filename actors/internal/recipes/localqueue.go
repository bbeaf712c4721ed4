package recipes

import (
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// localQueueActor is the actor of a lock whose node the owners of this process share. It turns
// messages into calls of its localqueue.Queue, and performs what that asks for on the owners and on
// the lock below, of which it is an owner itself.
type localQueueActor struct {
	shell.Shell
	shell.Defaults
	messages.IgnoreOwner[ask.Recipient]
	config      shell.LocalQueue
	state       *localqueue.Queue
	below       messages.LockRef
	ownerBelow  string              // the owner that it is to the lock below; empty for a rule without downgrades
	holds       []*messages.Granted // the nodes of the node hold: one, or two after a downgrade
	budgetTimer *time.Timer         // of the node hold
	idleTimer   *time.Timer
	mayHandOff  bool // a grant of the call in hand hands the lock on
}

func newLocalQueue(e *shell.Entry) host.Actor {
	config := *e.Recipe.LocalQueue
	l := &localQueueActor{config: config, below: messages.LockRef{To: e.Deps[0].Self}}
	l.state = localqueue.New(l, e.Recipe.Rule, uint32(min(config.Grants, 1<<30)))
	l.Init(e, l)
	if e.Recipe.Rule.Downgrades() {
		l.ownerBelow = "the local queue"
	}
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

// Acquire implements shell.Behavior.
func (l *localQueueActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	l.state.Acquire(incoming(r, msg))
}

// Cancel implements shell.Behavior.
func (l *localQueueActor) Cancel(r *shell.Request, reason messages.Reason) {
	l.mayHandOff = true
	l.state.Cancel(r.ID, requests.Reason(reason))
	l.mayHandOff = false
}

// Release implements shell.Behavior.
func (l *localQueueActor) Release(r *shell.Request) {
	l.mayHandOff = true
	l.state.Release(r.ID)
	l.mayHandOff = false
}

// ReceiveOther implements shell.Behavior.
func (l *localQueueActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case budgetOver:
		l.state.TimeBudgetUsed(msg.serial)
	case idleOver:
		l.state.IdleTimedOut()
	default:
		known := messages.DispatchOwner(l, from, msg, from)
		invariants.Check(l.state)
		return known
	}
	return true
}

// Idle implements shell.Behavior.
func (l *localQueueActor) Idle() bool { return l.state.Idle() }

// Epoch implements shell.Behavior: it is the epoch of the lock below, which may not have checked
// the session, as it has nothing to do.
func (l *localQueueActor) Epoch() uint64 {
	if len(l.holds) == 0 {
		return 0
	}
	return l.holds[0].Epoch
}

// SessionOverdue implements shell.Behavior.
func (l *localQueueActor) SessionOverdue() {
	l.state.NodeLost(l.holds[0].RequestId, requests.SessionLost)
}

// ---- messages of the lock below

// Granted implements messages.OwnerHandler. It ignores grants of withdrawn requests, whose
// release is under way, and grants of a lost session: Lost follows.
func (l *localQueueActor) Granted(_ ask.Recipient, msg *messages.Granted) {
	if l.Manager.Bridge.Lost(msg.Epoch) || !slices.Contains(l.state.NodeHolds(), msg.RequestId) {
		return
	}
	serial, self := msg.RequestId, l.Self
	if len(l.holds) == 0 {
		stopTimer(l.budgetTimer)
		l.budgetTimer = time.AfterFunc(l.config.Time, func() { self.Tell(budgetOver{serial}) })
	}
	l.holds = append(l.holds, msg)
	l.state.NodeGranted(serial, msg.Generation, msg.Czxid, msg.Step)
}

// Refused implements messages.OwnerHandler. A withdrawn request is refused, too.
func (l *localQueueActor) Refused(_ ask.Recipient, msg *messages.Refused) {
	if !l.stopWithLockBelow(msg.RequestId, msg.Reason) {
		l.setDetail(msg.Detail)
		l.state.NodeRefused(msg.RequestId, requests.Reason(msg.Reason))
	}
}

// Lost implements messages.OwnerHandler.
func (l *localQueueActor) Lost(_ ask.Recipient, msg *messages.Lost) {
	if !l.stopWithLockBelow(msg.RequestId, msg.Reason) {
		l.setDetail(msg.Detail)
		l.state.NodeLost(msg.RequestId, requests.Reason(msg.Reason))
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (l *localQueueActor) RevokeRequested(_ ask.Recipient, msg *messages.RevokeRequested) {
	l.state.NodeRevoked(msg.RequestId)
}

// Contended implements messages.OwnerHandler.
func (l *localQueueActor) Contended(_ ask.Recipient, msg *messages.Contended) {
	l.state.NodeContended(msg.RequestId)
}

// setDetail takes the detail of a message from below, which names the path already.
func (l *localQueueActor) setDetail(detail string) {
	l.Detail = strings.TrimPrefix(strings.TrimPrefix(detail, l.Path), ": ")
}

// ---- what the state asks for: localQueueActor is a localqueue.QueueActor

// AcquireNode implements localqueue.QueueActor.
func (l *localQueueActor) AcquireNode(serial uint64, kind queue.Kind, try bool, data []byte) {
	l.below.SendAcquire(&messages.Acquire{RequestId: serial, Owner: l.ownerBelow, Kind: uint32(kind), Try: try,
		Data: l.Manager.NodeData(data, ""), NotifyContended: true}, l.Self)
}

// ReleaseNode implements localqueue.QueueActor. Cancel takes back a grant as well, also one that is under
// way. It also says that the owner knows of the loss of a lost grant.
func (l *localQueueActor) ReleaseNode(serial uint64) {
	l.holds = slices.DeleteFunc(l.holds, func(g *messages.Granted) bool { return g.RequestId == serial })
	l.below.SendCancel(&messages.Cancel{RequestId: serial, Owner: l.ownerBelow}, l.Self)
}

// GrantBy implements localqueue.QueueActor.
func (l *localQueueActor) GrantBy(id requests.ID, serial, generation uint64, czxid int64, step uint32) {
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
		l.GrantStep(r, by, step)
		return
	}
	l.Grant(r, &messages.Granted{Path: l.Path, Node: by.Node,
		Generation: generation, Czxid: czxid, Step: step, SessionId: by.SessionId, Epoch: by.Epoch})
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

// stopWithLockBelow stops the actor if the actor below has stopped, and reports whether the
// message needs nothing more. The next request finds new actors.
func (l *localQueueActor) stopWithLockBelow(serial uint64, reason messages.Reason) bool {
	if reason != messages.Reason_INTERNAL && reason != messages.Reason_STOPPED {
		return false
	}
	if slices.Contains(l.state.NodeHolds(), serial) {
		l.StopFailed(reason)
	}
	return true
}

// Close implements shell.Behavior.
func (l *localQueueActor) Close(bool) {
	l.EndAll(requests.Closed)
	for _, serial := range l.state.NodeHolds() {
		l.ReleaseNode(serial)
	}
	stopTimer(l.budgetTimer)
	stopTimer(l.idleTimer)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

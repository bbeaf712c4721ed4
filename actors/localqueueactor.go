package actors

import (
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// localQueueActor is the front of a lock that the owners of this process share. It turns
// messages into events for its localqueue.Queue, and performs the effects by telling the
// owners and the lock below, of which it is an owner itself.
type localQueueActor struct {
	requestTable
	config      LocalQueueConfig
	state       *localqueue.Queue
	ownerBelow  string              // what it is to the lock below; empty where that knows no downgrade
	holds       []*messages.Granted // the nodes of the loan: one, or two, as who downgrades has
	budgetTimer *time.Timer         // of the loan
	lingerTimer *time.Timer
}

func newLocalQueue(r *actorEntry, local LocalQueueConfig) host.Actor {
	l := &localQueueActor{config: local, state: localqueue.New(r.recipe.rule, uint32(min(local.Grants, 1<<30)))}
	l.requestTable = newRequestTable(r, l)
	if r.recipe.rule.Downgrades() {
		l.ownerBelow = "the local queue"
	}
	return l
}

// What a lender tells itself: the loan of the serial number has been here for long; a
// loan may have been unused for long.
type (
	budgetOver struct{ serial uint64 }
	lingerOver struct{}
)

// Receive implements host.Actor.
func (l *localQueueActor) Receive(from ask.Recipient, msg any) {
	if l.retired {
		l.Refuse(from, msg)
		return
	}
	switch msg.(type) {
	case *messages.Lost, connectionLost: // the bridge says why
	default:
		l.checkSession()
	}
	switch msg := msg.(type) {
	case waitExpired:
		l.onWaitExpired(msg.id)
	case budgetOver:
		lend(l, localqueue.TimeBudgetUsed{Serial: msg.serial})
	case lingerOver:
		lend(l, localqueue.IdleTimedOut{})
	case tick:
		l.onTick(l.state.Idle() && l.requests.Len() == 0)
	default:
		if !messages.DispatchLock(l, from, msg, from) && !messages.DispatchOwner(l, from, msg, from) {
			l.receiveOther(msg)
		}
	}
}

// checkSession is that of the lock below, which nobody may have come to ask.
func (l *localQueueActor) checkSession() {
	if len(l.holds) == 0 || !l.manager.zk.Lost(l.holds[0].Epoch) {
		return
	}
	l.detail = sessionOverdue
	lend(l, localqueue.NodeLost{Serial: l.holds[0].RequestId, Reason: requests.SessionLost})
}

// ---- said by owners, to the desk

func (l *localQueueActor) acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire) {
	lend(l, localqueue.Acquire{ID: id, Owner: msg.Owner, Kind: kind, Try: msg.Try, NotifyContended: msg.NotifyContended, Data: msg.Data})
}

func (l *localQueueActor) cancel(id requests.ID, why requests.Reason) {
	lend(l, localqueue.Cancel{ID: id, Reason: why})
}

func (l *localQueueActor) release(id requests.ID) { lend(l, localqueue.Release{ID: id}) }

// ---- said by the lock below

// Granted implements messages.OwnerHandler.
func (l *localQueueActor) Granted(_ ask.Recipient, msg *messages.Granted) {
	if l.manager.zk.Lost(msg.Epoch) || !slices.Contains(l.state.NodeHolds(), msg.RequestId) {
		return // Lost is to come, or it is on its way back
	}
	serial, self := msg.RequestId, l.self
	if len(l.holds) == 0 {
		stopTimer(l.budgetTimer)
		l.budgetTimer = time.AfterFunc(l.config.Time, func() { self.Tell(budgetOver{serial}) })
	}
	l.holds = append(l.holds, msg)
	lend(l, localqueue.NodeGranted{Serial: serial, Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step})
}

// Refused implements messages.OwnerHandler. Also what was withdrawn is refused.
func (l *localQueueActor) Refused(_ ask.Recipient, msg *messages.Refused) {
	if l.handleEnd(msg.RequestId, msg.Reason) {
		l.detail = l.detailBelow(msg.Detail)
		lend(l, localqueue.NodeRefused{Serial: msg.RequestId, Reason: requests.Reason(msg.Reason)})
	}
}

// Lost implements messages.OwnerHandler.
func (l *localQueueActor) Lost(_ ask.Recipient, msg *messages.Lost) {
	if l.handleEnd(msg.RequestId, msg.Reason) {
		l.detail = l.detailBelow(msg.Detail)
		lend(l, localqueue.NodeLost{Serial: msg.RequestId, Reason: requests.Reason(msg.Reason)})
	}
}

// Released implements messages.OwnerHandler.
func (l *localQueueActor) Released(ask.Recipient, *messages.Released) {}

// Suspended implements messages.OwnerHandler.
func (l *localQueueActor) Suspended(ask.Recipient, *messages.Suspended) { l.suspend() }

// RevokeRequested implements messages.OwnerHandler.
func (l *localQueueActor) RevokeRequested(ask.Recipient, *messages.RevokeRequested) {
	for r := range l.holders() {
		l.revoke(r)
	}
}

// Contended implements messages.OwnerHandler.
func (l *localQueueActor) Contended(_ ask.Recipient, msg *messages.Contended) {
	lend(l, localqueue.NodeContended{Serial: msg.RequestId})
}

// detailBelow is the detail of a message from below, which names the path already.
func (l *localQueueActor) detailBelow(detail string) string {
	return strings.TrimPrefix(strings.TrimPrefix(detail, l.path), ": ")
}

// ---- performing

// lend is for every event.
func lend[E localqueue.Event](l *localQueueActor, e E) {
	for _, f := range localqueue.Step(l.state, e) {
		l.perform(f)
	}
	l.detail = ""
}

func (l *localQueueActor) perform(f localqueue.Effect) {
	switch below := (messages.LockRef{To: l.deps[0].self}); f.Kind {
	case localqueue.AcquireNode:
		below.SendAcquire(&messages.Acquire{RequestId: f.Serial, Owner: l.ownerBelow, Kind: uint32(f.NodeKind), Try: f.Try, Data: f.Data, NotifyContended: true}, l.self)
	case localqueue.ReleaseNode:
		// It takes back a grant as well, and one that is on its way; and of what was lost
		// it tells that the owner knows.
		l.holds = slices.DeleteFunc(l.holds, func(g *messages.Granted) bool { return g.RequestId == f.Serial })
		below.SendCancel(&messages.Cancel{RequestId: f.Serial, Owner: l.ownerBelow}, l.self)
	case localqueue.StartIdleTimer:
		l.startLinger()
	case localqueue.Grant:
		by := l.holds[0]
		if by.RequestId != f.Serial {
			by = l.holds[1]
		}
		r := l.requests.At(f.ID)
		if c, ok := r.key.from.(*acquisition); ok { // what it is told need not be a message of its own
			r.markGranted()
			c.onGranted(by, f.Step)
			return
		}
		l.grant(r, &messages.Granted{Path: l.path, Node: by.Node,
			Generation: f.Generation, Czxid: f.Czxid, Step: f.Step, SessionId: by.SessionId, Epoch: by.Epoch})
	case localqueue.Refuse:
		l.refuse(l.requests.At(f.ID), messages.Reason(f.Reason))
	case localqueue.Lose:
		l.lose(l.requests.At(f.ID), messages.Reason(f.Reason))
	case localqueue.ConfirmRelease:
		l.released(l.requests.At(f.ID), f.StillHeld)
	case localqueue.NotifyContended:
		l.contended(l.requests.At(f.ID))
	}
}

func (l *localQueueActor) startLinger() {
	if l.lingerTimer == nil {
		self := l.self
		l.lingerTimer = time.AfterFunc(l.config.Linger, func() { self.Tell(lingerOver{}) })
		return
	}
	l.lingerTimer.Reset(l.config.Linger)
}

// ---- the end

// handleEnd tells that a request below, or what it was granted, is over. If that is because
// the actor below is, so is this one: the next request finds new ones.
func (l *localQueueActor) handleEnd(serial uint64, why messages.Reason) bool {
	switch why {
	case messages.Reason_INTERNAL, messages.Reason_STOPPED:
		if !slices.Contains(l.state.NodeHolds(), serial) {
			return false
		}
		l.stopFailed()
		l.end(requests.Reason(why))
		return false
	}
	return true
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Nobody who asked is left without an answer, and nothing is kept of the lock below.
func (l *localQueueActor) Stopped(failure any) {
	defer l.manager.running.Done()
	l.markStopped(failure)
	if failure == nil {
		l.end(requests.Closed)
		return
	}
	l.failAll()
	for _, serial := range l.state.NodeHolds() {
		l.perform(localqueue.Effect{Kind: localqueue.ReleaseNode, Serial: serial})
	}
	l.stopTimers()
}

func (l *localQueueActor) end(why requests.Reason) {
	lend(l, localqueue.Close{Reason: why})
	l.stopTimers()
}

func (l *localQueueActor) stopTimers() {
	stopTimer(l.budgetTimer)
	stopTimer(l.lingerTimer)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// Refuse implements host.Actor: it answers what comes after the end. What the lock
// below says then, that was told by Stopped that nothing is wanted of it, is left
// unanswered.
func (l *localQueueActor) Refuse(from ask.Recipient, msg any) {
	l.refuseAfterStop(from, msg)
}

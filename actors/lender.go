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

// lender is the front of a lock that the owners of this process share. It turns
// messages into events for its localqueue.Queue, and performs the effects by telling the
// owners and the lock below, of which it is an owner itself.
type lender struct {
	desk
	local  Local
	state  *localqueue.Queue
	owner  string              // what it is to the lock below; empty where that knows no downgrade
	loan   []*messages.Granted // the nodes of the loan: one, or two, as who downgrades has
	time   *time.Timer         // of the loan
	linger *time.Timer
}

func newLender(r *resident, local Local) host.Actor {
	l := &lender{local: local, state: localqueue.New(r.recipe.rule, uint32(min(local.Grants, 1<<30)))}
	l.desk = newDesk(r, l)
	if r.recipe.rule.Downgrades() {
		l.owner = "the local queue"
	}
	return l
}

// What a lender tells itself: the loan of the serial number has been here for long; a
// loan may have been unused for long.
type (
	timeUp   struct{ serial uint64 }
	lingered struct{}
)

// Receive implements host.Actor.
func (l *lender) Receive(from ask.Recipient, msg any) {
	if l.retired {
		l.Refuse(from, msg)
		return
	}
	switch msg.(type) {
	case *messages.Lost, disconnected: // the bridge says why
	default:
		l.checkSession()
	}
	switch msg := msg.(type) {
	case expired:
		l.expire(msg.id)
	case timeUp:
		lend(l, localqueue.TimeBudgetUsed{Serial: msg.serial})
	case lingered:
		lend(l, localqueue.IdleTimedOut{})
	case tick:
		l.rest(l.state.Idle() && l.requests.Len() == 0)
	default:
		if !messages.DispatchLock(l, from, msg, from) && !messages.DispatchOwner(l, from, msg, from) {
			l.unknown(msg)
		}
	}
}

// checkSession is that of the lock below, which nobody may have come to ask.
func (l *lender) checkSession() {
	if len(l.loan) == 0 || !l.manager.zk.Lost(l.loan[0].Epoch) {
		return
	}
	l.detail = overdue
	lend(l, localqueue.NodeLost{Serial: l.loan[0].RequestId, Reason: requests.SessionLost})
}

// ---- said by owners, to the desk

func (l *lender) acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire) {
	lend(l, localqueue.Acquire{ID: id, Owner: msg.Owner, Kind: kind, Try: msg.Try, NotifyContended: msg.NotifyContended, Data: msg.Data})
}

func (l *lender) cancel(id requests.ID, why requests.Reason) {
	lend(l, localqueue.Cancel{ID: id, Reason: why})
}

func (l *lender) release(id requests.ID) { lend(l, localqueue.Release{ID: id}) }

// ---- said by the lock below

// Granted implements messages.OwnerHandler.
func (l *lender) Granted(_ ask.Recipient, msg *messages.Granted) {
	if l.manager.zk.Lost(msg.Epoch) || !slices.Contains(l.state.NodeHolds(), msg.RequestId) {
		return // Lost is to come, or it is on its way back
	}
	serial, self := msg.RequestId, l.self
	if len(l.loan) == 0 {
		stopTimer(l.time)
		l.time = time.AfterFunc(l.local.Time, func() { self.Tell(timeUp{serial}) })
	}
	l.loan = append(l.loan, msg)
	lend(l, localqueue.NodeGranted{Serial: serial, Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step})
}

// Refused implements messages.OwnerHandler. Also what was withdrawn is refused.
func (l *lender) Refused(_ ask.Recipient, msg *messages.Refused) {
	if l.over(msg.RequestId, msg.Reason) {
		l.detail = l.about(msg.Detail)
		lend(l, localqueue.NodeRefused{Serial: msg.RequestId, Reason: requests.Reason(msg.Reason)})
	}
}

// Lost implements messages.OwnerHandler.
func (l *lender) Lost(_ ask.Recipient, msg *messages.Lost) {
	if l.over(msg.RequestId, msg.Reason) {
		l.detail = l.about(msg.Detail)
		lend(l, localqueue.NodeLost{Serial: msg.RequestId, Reason: requests.Reason(msg.Reason)})
	}
}

// Released implements messages.OwnerHandler.
func (l *lender) Released(ask.Recipient, *messages.Released) {}

// Suspended implements messages.OwnerHandler.
func (l *lender) Suspended(ask.Recipient, *messages.Suspended) { l.suspend() }

// RevokeRequested implements messages.OwnerHandler.
func (l *lender) RevokeRequested(ask.Recipient, *messages.RevokeRequested) {
	for r := range l.holders() {
		l.revoke(r)
	}
}

// Contended implements messages.OwnerHandler.
func (l *lender) Contended(_ ask.Recipient, msg *messages.Contended) {
	lend(l, localqueue.NodeContended{Serial: msg.RequestId})
}

// about is the detail of a message from below, which names the path already.
func (l *lender) about(detail string) string {
	return strings.TrimPrefix(strings.TrimPrefix(detail, l.path), ": ")
}

// ---- performing

// lend is for every event.
func lend[E localqueue.Event](l *lender, e E) {
	for _, f := range localqueue.Step(l.state, e) {
		l.perform(f)
	}
	l.detail = ""
}

func (l *lender) perform(f localqueue.Effect) {
	switch below := (messages.LockRef{To: l.upon[0].self}); f.Kind {
	case localqueue.AcquireNode:
		below.SendAcquire(&messages.Acquire{RequestId: f.Serial, Owner: l.owner, Kind: uint32(f.NodeKind), Try: f.Try, Data: f.Data, NotifyContended: true}, l.self)
	case localqueue.ReleaseNode:
		// It takes back a grant as well, and one that is on its way; and of what was lost
		// it tells that the owner knows.
		l.loan = slices.DeleteFunc(l.loan, func(g *messages.Granted) bool { return g.RequestId == f.Serial })
		below.SendCancel(&messages.Cancel{RequestId: f.Serial, Owner: l.owner}, l.self)
	case localqueue.StartIdleTimer:
		l.startLinger()
	case localqueue.Grant:
		by := l.loan[0]
		if by.RequestId != f.Serial {
			by = l.loan[1]
		}
		r := l.requests.At(f.ID)
		if c, ok := r.key.from.(*claim); ok { // what it is told need not be a message of its own
			r.hold()
			c.hold(by, f.Step)
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

func (l *lender) startLinger() {
	if l.linger == nil {
		self := l.self
		l.linger = time.AfterFunc(l.local.Linger, func() { self.Tell(lingered{}) })
		return
	}
	l.linger.Reset(l.local.Linger)
}

// ---- the end

// over tells that a request below, or what it was granted, is over. If that is because
// the actor below is, so is this one: the next request finds new ones.
func (l *lender) over(serial uint64, why messages.Reason) bool {
	switch why {
	case messages.Reason_INTERNAL, messages.Reason_STOPPED:
		if !slices.Contains(l.state.NodeHolds(), serial) {
			return false
		}
		l.fail()
		l.end(requests.Reason(why))
		return false
	}
	return true
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Nobody who asked is left without an answer, and nothing is kept of the lock below.
func (l *lender) Stopped(failure any) {
	defer l.manager.running.Done()
	l.stop(failure)
	if failure == nil {
		l.end(requests.Closed)
		return
	}
	l.giveUp()
	for _, serial := range l.state.NodeHolds() {
		l.perform(localqueue.Effect{Kind: localqueue.ReleaseNode, Serial: serial})
	}
	l.stopTimers()
}

func (l *lender) end(why requests.Reason) {
	lend(l, localqueue.Close{Reason: why})
	l.stopTimers()
}

func (l *lender) stopTimers() {
	stopTimer(l.time)
	stopTimer(l.linger)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// Refuse implements host.Actor: it answers what comes after the end. What the lock
// below says then, that was told by Stopped that nothing is wanted of it, is left
// unanswered.
func (l *lender) Refuse(from ask.Recipient, msg any) {
	l.tooLate(from, msg)
}

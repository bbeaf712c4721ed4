package lock

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Messages of an actor to itself.
type (
	// withdrawal: a request ends as by a Cancel, because the actor or the future that has sent it
	// has ended.
	withdrawal struct{ id requests.ID }
	// tryDisconnected: a request with Try ends unless it is granted, because there is no
	// connection.
	tryDisconnected struct{ id requests.ID }
	// waitExpired: the wait of a request is over.
	waitExpired struct{ id requests.ID }
	// holdTime: a part of the time for which a request may hold is over.
	holdTime struct{ id requests.ID }
)

// receiveOwn handles the messages that are not of the recipe.
func (l *Actor) receiveOwn(msg any) {
	switch msg := msg.(type) {
	case manager.OpenQuery:
		l.answerOpen(msg)
	case manager.RefuseWaiting:
		// An owner that holds the lock may wait to enter it again.
		l.failWaiting(messages.Reason_DRAINING, func(r *Request) bool { return !l.holds(r.OwnerName()) })
	case withdrawal:
		if r := l.table.requests.At(msg.id); r != nil {
			l.cancel(r, messages.Reason_CANCELLED)
		}
	case tryDisconnected:
		if r := l.table.requests.At(msg.id); r != nil && r.Granted == nil {
			l.Detail = l.Manager.Session.OutageText()
			l.behavior.Cancel(r, messages.Reason_DISCONNECTED)
		}
	case waitExpired:
		if r := l.table.requests.At(msg.id); r != nil && r.Granted == nil {
			l.Detail = fmt.Sprintf("after %v", r.extras.wait) + l.nestedHint(r)
			l.behavior.Cancel(r, messages.Reason_TIMED_OUT)
		}
	case TakeBack:
		l.takeBack(msg)
	case holdTime:
		l.onHoldTime(msg.id)
	case manager.Tick:
		l.onTick()
	case manager.StateChange:
		l.onSessionState(msg)
		l.Detail = ""
		l.behavior.ReceiveOther(nil, msg.SessionChanged) // a recipe with directories takes it as of the bridge
	case host.Terminated:
		l.senderEnded(msg.Actor)
	case host.Undelivered:
		l.undelivered(msg.Tag)
	case *actor.DeadLetterResponse: // host.Terminated says that the sender of the request has ended
	default:
		l.Manager.Log.Warn("lock got a message that it does not know", "path", l.Path, "message", fmt.Sprintf("%T", msg), "do", "correct the sender")
	}
}

// onSessionState tells the holders that the connection is lost, and ends the requests that do not
// wait for the next connection or session. The holders of a lost session hear of that from the
// recipe.
func (l *Actor) onSessionState(now manager.StateChange) {
	l.suspended = now.State == messages.SessionState_SUSPENDED
	if !isLost(now.State) {
		return
	}
	for _, r := range l.Requests() {
		l.tellIfSuspended(r)
	}
	l.Detail = l.Manager.Session.OutageText()
	l.failWaiting(messages.Reason_DISCONNECTED, func(r *Request) bool { return r.Try })
	if now.State == messages.SessionState_LOST {
		l.failWaiting(messages.Reason_SESSION_LOST, func(r *Request) bool {
			return r.extras != nil && r.extras.epoch != 0 && r.extras.epoch <= now.Epoch
		})
	}
}

// onTick is called at each tick. It stops an actor that has been idle for long. Idle means that no
// request is open and nothing is held; quiet, that no request has come since the last tick, either.
func (l *Actor) onTick() {
	idle := l.behavior.Idle() && l.table.requests.Len() == 0
	quiet := idle && !l.used
	if !l.used {
		l.table.releaseMemory()
	}
	for _, r := range l.Requests() {
		if a := r.Acquisition(); a != nil {
			a.ArmLeakDetection(l.Manager.Session.TimeOf(r.since))
		}
		l.reportNested(r)
		l.endOverdueHold(r)
	}
	l.unwatchIdleSenders()
	l.used = !idle // a request that is open now is use after this tick, too
	if l.Manager.RetireIfQuiet(l.Entry, quiet) {
		l.stopping = true
		return
	}
	l.behavior.Tick(quiet)
}

// isLost reports whether there is no connection. It returns false once the bridge is closed.
func isLost(s messages.SessionState) bool {
	return s == messages.SessionState_SUSPENDED || s == messages.SessionState_LOST
}

// SessionOverdue is the detail of a loss that the bridge has not reported yet.
const SessionOverdue = "the session is over or past its deadline"

// checkSession comes before all else: nothing is granted in a session that must be taken for
// lost by now. In a process that was paused the bridge may not have reported that yet, and its
// timer may not have fired. A message that itself reports the loss is not preceded by the check: it
// also says why.
func (l *Actor) checkSession(msg any) {
	switch msg := msg.(type) {
	case manager.StateChange:
		if msg.State == messages.SessionState_LOST {
			return
		}
	case *messages.Lost:
		return
	}
	if epoch := l.behavior.Epoch(); epoch != 0 && l.Manager.Session.LostAt(epoch, l.now()) {
		l.Detail = SessionOverdue
		l.behavior.SessionOverdue()
		l.Detail = ""
	}
}

// answerOpen answers the question for the open requests.
func (l *Actor) answerOpen(q manager.OpenQuery) {
	var all []manager.OpenRequest
	namer, names := l.behavior.(interface{ NodesOf(requests.ID) []string })
	for _, r := range l.Requests() {
		var nodes []string
		if names && r.Granted == nil {
			nodes = namer.NodesOf(r.ID)
		}
		all = append(all, manager.OpenRequest{Entry: l.Entry, Kind: r.Kind, Owner: r.OwnerName(), Actor: r.actor(), State: r.state(), Granted: r.Granted,
			Since: l.Manager.Session.TimeOf(r.since), FromLockActor: r.FromLockActor, From: r.owner, Nodes: nodes})
	}
	q.Reply <- all
}

// noteGrantEnd is called when a grant has ended, in whatever way.
func (l *Actor) noteGrantEnd(r *Request) {
	if r.Granted != nil && !r.FromLockActor && l.Manager.RefusesNew() {
		l.Self.Tell(manager.RefuseWaiting{})
	}
}

// holds reports whether a named owner holds the lock.
func (l *Actor) holds(owner string) bool {
	if owner == "" {
		return false
	}
	for _, r := range l.Requests() {
		if r.Holds() && r.OwnerName() == owner {
			return true
		}
	}
	return false
}

// failWaiting ends the waiting requests of owners that match, at once: a request that waited for
// its turn in the mailbox could be granted before.
func (l *Actor) failWaiting(reason messages.Reason, match func(*Request) bool) {
	for _, r := range l.Requests() {
		if r.Granted == nil && !r.FromLockActor && match(r) {
			l.behavior.Cancel(r, reason)
		}
	}
}

// StopFailed stops the actor because one of its dependencies has stopped. A request that comes
// from now on finds new actors. Open requests end with INTERNAL.
func (l *Actor) StopFailed() {
	l.Manager.Forget(l.Entry)
	l.stopping, l.failed = true, true
	l.Self.Stop()
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed. All open
// requests get an answer, and no contender's node and no request to a dependency is left behind.
func (l *Actor) Stopped(failure any) {
	defer l.Manager.Stopped()
	l.Manager.Forget(l.Entry)
	for who := range l.senders {
		l.Self.Unwatch(who)
	}
	clear(l.senders)
	l.stopping, l.failed = true, l.failed || failure != nil
	waits := l.failed && l.failAll()
	if !waits {
		l.behavior.Close(l.failed)
	}
	for _, r := range l.Requests() {
		if r.lost != 0 && !(waits && l.mustConfirmLoss(r)) { // the recipe does not know it
			l.forgetLost(r)
		}
	}
	l.Detail = ""
}

// failAll answers all requests of an actor whose state cannot be relied on any more. It returns true
// if owners elsewhere may believe in lost grants: the nodes of the actor stay until they do not.
func (l *Actor) failAll() (waits bool) {
	reason := messages.Reason_CLOSED
	if !l.Manager.Closed() {
		reason, l.Detail = messages.Reason_INTERNAL, "see the log"
	}
	l.EndAll(requests.Reason(reason))
	l.Detail = ""
	var lost []*Request
	for _, r := range l.Requests() {
		lost = append(lost, r)
	}
	return l.AwaitLossConfirmed(lost, func() { l.behavior.Close(true) })
}

// Refuse implements host.Actor: it answers what comes after the end.
func (l *Actor) Refuse(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case manager.OpenQuery:
		l.answerOpen(msg)
		return
	case TakeBack:
		l.confirmLoss(l.table.requests.At(*msg.From.RequestID()))
		return
	}
	if !messages.DispatchLock(afterStop{l}, from, msg, from) {
		l.behavior.ReceiveAfterStop(from, msg)
	}
}

// confirmLoss ends the request of a failed actor whose owner elsewhere has heard of the loss. r may be
// nil.
func (l *Actor) confirmLoss(r *Request) {
	if r != nil && r.lost != 0 {
		l.forgetLost(r)
	}
}

// afterStop has the handlers of a stopped actor.
type afterStop struct{ *Actor }

// Acquire implements messages.LockHandler.
func (l afterStop) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	tell(from, l.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (l afterStop) Cancel(from ask.Recipient, msg *messages.Cancel) {
	l.confirmLoss(l.Lookup(from, msg.GetOwner(), msg.GetRequestId()))
}

// Release implements messages.LockHandler.
func (l afterStop) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	l.confirmLoss(l.Lookup(from, msg.GetOwner(), msg.GetRequestId()))
	reason := messages.Reason_CLOSED // an actor that retired had no grants
	if l.failed {
		reason = messages.Reason_INTERNAL
	}
	tell(from, l.refusal(msg.GetRequestId(), reason, "the lock's actor has stopped"))
}

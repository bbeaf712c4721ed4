package lock

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// StopFailed stops the actor because one of its dependencies has stopped. A request that comes
// from now on finds new actors. Open requests end with the reason.
func (l *Actor) StopFailed(reason messages.Reason) {
	l.Manager.Forget(l.Entry)
	l.stopping, l.failReason = true, reason
	l.Self.Stop()
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed. All open
// requests get an answer, and no contender's node and no request to a dependency is left behind.
func (l *Actor) Stopped(failure any) {
	defer l.Manager.Stopped()
	l.Manager.Forget(l.Entry)
	l.unwatchSenders()
	l.stopping = true
	if failure != nil {
		l.failReason = messages.Reason_INTERNAL
	}
	if l.failReason != 0 {
		l.failAll()
	}
	l.behavior.Close(l.failReason != 0)
	for _, r := range l.Requests() {
		if r.lost != 0 { // the recipe does not know it
			l.forgetLost(r)
		}
	}
	l.Detail = ""
}

// failAll answers all requests of an actor whose state cannot be relied on any more.
func (l *Actor) failAll() {
	reason := l.failReason
	switch {
	case l.Manager.Closed():
		reason = messages.Reason_CLOSED
	case reason == messages.Reason_INTERNAL:
		l.Detail = "see the log"
	}
	l.EndAll(requests.Reason(reason))
	l.Detail = ""
}

// Refuse implements host.Actor: it answers what comes after the end.
func (l *Actor) Refuse(from ask.Recipient, msg any) {
	if query, is := msg.(manager.OpenQuery); is {
		l.answerOpen(query)
		return
	}
	if !messages.DispatchLock(afterStop{l}, from, msg, from) {
		l.behavior.ReceiveAfterStop(from, msg)
	}
}

// afterStop has the handlers of a stopped actor.
type afterStop struct{ *Actor }

// Acquire implements messages.LockHandler.
func (l afterStop) Acquire(from ask.Recipient, msg *messages.Acquire, _ ask.Reply[*messages.Granted]) {
	tell(from, l.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (l afterStop) Cancel(ask.Recipient, *messages.Cancel) {}

// Release implements messages.LockHandler.
func (l afterStop) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	reason := messages.Reason_CLOSED // an actor that retired had no grants
	if l.failReason != 0 {
		reason = messages.Reason_INTERNAL
	}
	tell(from, l.refusal(msg.GetRequestId(), reason, "the lock's actor has stopped"))
}

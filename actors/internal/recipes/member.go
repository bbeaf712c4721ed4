package recipes

import (
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// acquireMember is Acquire for the member of a multi-lock. While another multi-lock has yet to release
// what the same owner has lost, since a client of a lock server has yet to hear of that, it waits: at a
// refusal the attempt would begin anew at once, again and again.
func (l *lockActor) acquireMember(from ask.Recipient, msg acquireMember) {
	if reason := l.LostBy(msg.Owner); reason != 0 {
		msg.create.multiLock.Tell(ownerLost{msg.create.attempt, reason, fmt.Sprintf("owner %q has lost %s and not released it", msg.Owner, l.Path)})
		return
	}
	if lost := l.LostOf(msg.Owner); len(lost) > 0 {
		if msg.Try {
			ask.Send(from, &messages.Refused{RequestId: msg.RequestId, Reason: messages.Reason_NOT_ACQUIRED}, l.Self)
		} else {
			lock.AwaitRelease(lost, func() { ask.Send(l.Self, msg, from) })
		}
		return
	}
	if msg.queueing {
		if l.queue.state.Has(msg.Owner) {
			ask.Send(from, &messages.Refused{RequestId: msg.RequestId, Reason: messages.Reason_WOULD_DEADLOCK, Detail: l.deadlockDetail(msg.Owner)}, l.Self)
			return
		}
		msg.create.reportNone()
		return
	}
	r := l.Accept(from, msg.Acquire)
	if r == nil {
		return
	}
	l.queue.acquire(incoming(r, msg.Acquire), msg.create)
}

// deadlockDetail says why a request of an owner is refused with WOULD_DEADLOCK.
func (l *lockActor) deadlockDetail(owner string) string {
	return fmt.Sprintf("owner %q waits for %s or holds it by another request, of which this one is no re-entry: release or cancel that first", owner, l.Path)
}

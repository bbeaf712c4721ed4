package recipes

import (
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// A lock as the member of a multi-lock.

// acquireMember is Acquire for the member of a multi-lock.
func (l *lockActor) acquireMember(from ask.Recipient, msg acquireMember) {
	if reason := l.LostBy(msg.Owner); reason != 0 {
		msg.create.refuse(reason, fmt.Sprintf("owner %q has lost %s and not released it", msg.Owner, l.Path))
		return
	}
	if msg.queueing {
		if may, _ := l.checkReentry(msg); may {
			l.expected.Add(msg.Owner, msg.create.queueing) // it asks for this lock later
			msg.create.reportNone()
		}
		return
	}
	l.expected.Remove(msg.Owner, func(q *queueingAttempt) bool { return q == msg.create.queueing || q.over.Load() })
	r := l.Accept(from, msg.Acquire)
	if r == nil {
		return
	}
	may, needsNode := l.checkReentry(msg)
	e := lockqueue.Acquire{Incoming: incoming(r, msg.Acquire)}
	switch {
	case !may:
		l.Remove(r)
		return
	case needsNode:
		if l.atomicCreates == nil {
			l.atomicCreates = map[requests.ID]*atomicCreate{}
		}
		l.atomicCreates[r.ID], e.AtomicCreate = msg.create, msg.create.number
	default:
		msg.create.reportNone()
	}
	feed(l, e)
	l.refuseExpected(e.Owner, e.Kind, msg.create.queueing)
}

// checkReentry checks a request for the member of a multi-lock against the requests that its
// owner has for this lock. It reports whether the request may go on, and whether it needs a
// node.
func (l *lockActor) checkReentry(msg acquireMember) (may, needsNode bool) {
	switch standing := l.state.Standing(msg.Owner, queue.Kind(msg.Kind)); {
	case !standing.Known:
		return true, true
	case standing.AtomicCreate == 0 && msg.create.members > 1:
		msg.create.refuse(messages.Reason_WOULD_DEADLOCK, msg.create.deadlockDetail(l.Path))
		return false, false
	default:
		msg.create.reportKnown(l.Path, standing.AtomicCreate)
		return true, false
	}
}

// refuseExpected refuses the attempts, other than mine, that expect that the owner has nothing
// of this lock, if the owner waits for it or holds it now.
func (l *lockActor) refuseExpected(owner string, kind queue.Kind, mine *queueingAttempt) {
	all := l.expected[owner]
	if len(all) == 0 || !l.state.Standing(owner, kind).Known {
		return
	}
	for _, q := range all {
		if q != mine {
			q.refuse(messages.Reason_WOULD_DEADLOCK, fmt.Sprintf("owner %q has asked for %s by another request "+
				"while this one waited in the request queue of a semaphore", owner, l.Path))
		}
	}
	l.expected.Remove(owner, func(q *queueingAttempt) bool { return q != mine })
}

// forgetAttempts forgets attempts that are over.
func (l *lockActor) forgetAttempts() {
	for owner := range l.expected {
		l.expected.Remove(owner, func(q *queueingAttempt) bool { return q.over.Load() })
	}
}

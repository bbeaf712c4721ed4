package recipes

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// A lock as the member of a multi-lock.

// acquireMember is Acquire for the member of a multi-lock.
func (l *lockActor) acquireMember(from ask.Recipient, msg acquireMember) {
	if msg.checkOnly {
		if may, _ := l.checkReentry(msg); may {
			l.expectAttempt(msg.Owner, msg.create.queueing)
			msg.create.reportNone()
		}
		return
	}
	l.forgetAttempts(msg.create.queueing)
	r := l.Accept(from, msg.Acquire)
	if r == nil {
		return
	}
	may, needsNode := l.checkReentry(msg)
	e := acquireEvent(r, msg.Acquire)
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
	if reason, lost := l.state.LostBy(msg.Owner); l.anyOfOwners(lost) {
		msg.create.refuse(messages.Reason(reason), fmt.Sprintf("owner %q has lost %s and not released it", msg.Owner, l.Path))
		return false, false
	}
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

// anyOfOwners reports whether some of the requests are not those of another lock's actor, which
// releases at once what it has lost.
func (l *lockActor) anyOfOwners(ids []requests.ID) bool {
	return slices.ContainsFunc(ids, func(id requests.ID) bool {
		r := l.Request(id)
		return r != nil && !r.FromLockActor
	})
}

// expectAttempt notes that an attempt of the owner asks for this lock later.
func (l *lockActor) expectAttempt(owner string, q *queueingAttempt) {
	if owner == "" {
		return
	}
	if l.expected == nil {
		l.expected = map[string][]*queueingAttempt{}
	}
	l.expected[owner] = append(l.expected[owner], q)
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
	l.expected[owner] = slices.DeleteFunc(all, func(q *queueingAttempt) bool { return q != mine })
}

// forgetAttempts forgets the attempt that has come to this lock, and attempts that are over.
func (l *lockActor) forgetAttempts(arrived *queueingAttempt) {
	for owner, all := range l.expected {
		if all = slices.DeleteFunc(all, func(q *queueingAttempt) bool { return q == arrived || q.over.Load() }); len(all) > 0 {
			l.expected[owner] = all
		} else {
			delete(l.expected, owner)
		}
	}
}

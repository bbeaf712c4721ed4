package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The end of a multi-lock's attempts, and how they begin anew.

// restart begins an attempt anew that the loss of a session or of a node has taken out of the
// queues, or that was a try of its first request alone. Any other reason ends it.
func (m *multiLockActor) restart(a *attempt, why requests.Reason) {
	if why == requests.NotAcquired && m.endTry(a) {
		m.withdraw(a)
		m.begin(a)
		return
	}
	if why != requests.SessionLost && why != requests.NodeDeleted {
		m.end(a, why)
		return
	}
	if lost := m.LostBy(a.msg.Owner); lost != 0 {
		m.end(a, requests.Reason(lost))
		return
	}
	m.withdraw(a)
	if a.repeats++; a.repeats > requests.MaxRepeats { // see lockqueue: its nodes are lost as they come
		m.untilTick = append(m.untilTick, a)
		return
	}
	m.begin(a)
}

// Tick implements lock.Behavior.
func (m *multiLockActor) Tick(bool) {
	waiting := m.untilTick
	m.untilTick = nil
	for _, a := range waiting {
		if len(a.requests) > 0 && m.byRequest.At(a.requests[0].ID) == a { // it has not ended meanwhile
			m.begin(a)
		}
	}
}

// endTry has an attempt try no more, and reports whether requests are left that wait.
func (m *multiLockActor) endTry(a *attempt) bool {
	a.try = false
	if first := a.requests[0]; first.Try {
		m.leave(a, first)
		m.RefuseRequest(first.ID, requests.NotAcquired)
	}
	return len(a.requests) > 0
}

// end refuses the requests of an attempt, whatever members it has got so far.
func (m *multiLockActor) end(a *attempt, why requests.Reason) {
	if a == nil {
		return
	}
	m.withdraw(a)
	m.forget(a)
	for _, r := range a.requests {
		m.RefuseRequest(r.ID, why)
	}
}

// withdraw releases or cancels all members, and ends the attempt.
func (m *multiLockActor) withdraw(a *attempt) {
	a.create.abort()
	for i, member := range m.Deps {
		messages.LockRef{To: member.Self}.SendCancel(&messages.Cancel{RequestId: a.memberID(i), Owner: a.msg.Owner}, m.Self)
	}
	delete(m.attempts, a.id)
}

// forget forgets the requests of an attempt.
func (m *multiLockActor) forget(a *attempt) {
	for _, r := range a.requests {
		m.byRequest.Remove(r.ID)
	}
	if m.byOwner[a.msg.Owner] == a {
		delete(m.byOwner, a.msg.Owner)
	}
}

// onReleaseAnswered takes a member's answer to the release.
func (m *multiLockActor) onReleaseAnswered(a *attempt, why requests.Reason) {
	if !a.members.ReleaseAnswered(why) {
		return
	}
	delete(m.attempts, a.id)
	m.forget(a)
	r := a.requests[0]
	if why := a.members.Reason(); why != 0 {
		m.RefuseRequest(r.ID, why)
		return
	}
	m.ConfirmRelease(r.ID, 0)
}

// ReceiveAfterStop implements lock.Behavior: the answers of members need nothing then.
func (m *multiLockActor) ReceiveAfterStop(ask.Recipient, any) {}

// Close implements lock.Behavior.
func (m *multiLockActor) Close(bool) {
	for _, id := range slices.Sorted(maps.Keys(m.attempts)) {
		m.withdraw(m.attempts[id])
	}
	m.untilTick = nil
	m.EndAll(requests.Closed)
}

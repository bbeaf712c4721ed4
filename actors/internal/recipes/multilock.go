package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// multiLockActor is the actor of a multi-lock. It asks the actors of its members on behalf of
// its owners: all members at once, whose nodes one transaction then creates. With semaphores
// among them an attempt has two phases. First one transaction creates its nodes in the request
// queues of all semaphores; when it has passed all of them, one transaction creates the leases
// of the semaphores and the nodes of all other members. A request queue is left when its
// semaphore has granted the lease.
//
// No two attempts wait for each other. Order the nodes of locks and leases by the transaction
// that created them, and within one transaction by step. In phase 2 an attempt waits only for
// holders and for nodes that come before its own in this order. In phase 1 it waits for attempts
// in phase 2, which wait for none in phase 1, and for nodes of request queues that come before
// its own. An attempt that one process keeps waiting after the request queue before it may ask
// for leases (see semaphore.State) waits only for attempts of phase 2.
type multiLockActor struct {
	shell.Shell
	shell.Defaults
	messages.IgnoreOwner[ask.Recipient]
	semaphores int                 // among the members
	attempts   map[uint64]*attempt // those that ask members or hold them, by id
	byRequest  map[requests.ID]*attempt
	byOwner    requests.ByOwner[*attempt] // those of byRequest that have a named owner
	last       uint64                     // attempt
}

// attempt is one try of a request to get all members, and then what the request holds. A request
// begins another attempt, with another id, if it loses a node while it waits.
type attempt struct {
	r            *shell.Request
	msg          *messages.Acquire
	id           uint64
	create       *atomicCreate
	queueing     *queueingAttempt
	queuesPassed int
	members      requests.Parts[*messages.Granted]
}

// memberBits is how many low bits of a member's request id are the number of the member.
const memberBits = 8

func newMultiLock(e *shell.Entry) host.Actor {
	m := &multiLockActor{attempts: map[uint64]*attempt{}, byRequest: map[requests.ID]*attempt{}}
	m.Init(e, m)
	for i := range m.Deps {
		if m.isSemaphore(i) {
			m.semaphores++
		}
	}
	return m
}

func (m *multiLockActor) isSemaphore(member int) bool { return m.Deps[member].Recipe.Permits > 0 }

// ---- messages of owners

// Acquire implements shell.Behavior.
func (m *multiLockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	a := &attempt{r: r, msg: msg}
	m.byRequest[r.ID] = a
	m.byOwner.Add(msg.Owner, a)
	m.begin(a)
}

// begin asks all members at once: for the nodes of all of them; or, with semaphores among them,
// for places in their request queues, and whether the owner has something of the others.
func (m *multiLockActor) begin(a *attempt) {
	m.last++
	a.id, a.queuesPassed = m.last, 0
	m.attempts[a.id] = a
	a.members.Acquire(len(m.Deps))
	a.queueing = &queueingAttempt{multiLock: m.Self, attempt: a.id}
	a.create = newAtomicCreate(m, a)
	for i := range m.Deps {
		m.askMember(a, i, m.semaphores > 0)
	}
}

func (m *multiLockActor) askMember(a *attempt, i int, queueing bool) {
	ask.Send(m.Deps[i].Self, acquireMember{&messages.Acquire{RequestId: a.memberID(i), Owner: a.msg.Owner,
		Revocable: a.msg.Revocable, Data: a.msg.Data, Try: a.msg.Try, Kind: uint32(m.Recipe.MemberKinds[i])}, a.create, queueing}, m.Self)
}

// onQueuePassed begins phase 2 when the attempt has passed all request queues.
func (m *multiLockActor) onQueuePassed(requestID uint64) {
	a, _ := m.attemptOf(requestID)
	if a == nil {
		return
	}
	if a.queuesPassed++; a.queuesPassed < m.semaphores {
		return
	}
	a.create = newAtomicCreate(m, a)
	for i := range m.Deps {
		m.askMember(a, i, false)
	}
}

func (a *attempt) memberID(i int) uint64 { return a.id<<memberBits | uint64(i) }

// Cancel implements shell.Behavior.
func (m *multiLockActor) Cancel(r *shell.Request, reason messages.Reason) {
	if a := m.byRequest[r.ID]; a.members.Stage() != requests.Releasing {
		m.end(a, requests.Reason(reason))
	}
}

// Release implements shell.Behavior.
func (m *multiLockActor) Release(r *shell.Request) {
	a := m.byRequest[r.ID]
	a.members.Release()
	for i, member := range m.Deps {
		messages.LockRef{To: member.Self}.SendRelease(&messages.Release{RequestId: a.memberID(i), Owner: a.msg.Owner}, m.Self)
	}
}

// ReceiveOther implements shell.Behavior.
func (m *multiLockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case queuePassed:
		m.onQueuePassed(msg.requestID)
	case attemptRefused:
		m.Detail = msg.detail
		m.end(m.attempts[msg.attempt], requests.Reason(msg.reason))
	default:
		return messages.DispatchOwner(m, from, msg, from)
	}
	return true
}

// Idle implements shell.Behavior. A multi-lock has nothing but its requests.
func (m *multiLockActor) Idle() bool { return true }

// ---- messages of members

// attemptOf returns the attempt that a member answers, and the number of the member.
func (m *multiLockActor) attemptOf(id uint64) (*attempt, int) {
	return m.attempts[id>>memberBits], int(id & (1<<memberBits - 1))
}

// Granted implements messages.OwnerHandler. It ignores grants of a lost session: Lost follows.
func (m *multiLockActor) Granted(_ ask.Recipient, msg *messages.Granted) {
	a, i := m.attemptOf(msg.RequestId)
	if a == nil || m.Manager.Bridge.Lost(msg.Epoch) {
		return
	}
	all := a.members.Granted(i, msg)
	if all == nil {
		return
	}
	first := all[0] // all members have its token: see atomicCreate.tokensEqual
	m.Grant(a.r, &messages.Granted{Path: first.Path, Node: first.Node, Generation: first.Generation, Czxid: first.Czxid, Step: first.Step,
		SessionId: first.SessionId, Epoch: first.Epoch, Parts: all})
	if a.members.Revoked() {
		m.RequestRevoke(a.r.ID)
	}
}

// Refused implements messages.OwnerHandler.
func (m *multiLockActor) Refused(_ ask.Recipient, msg *messages.Refused) {
	a, _ := m.attemptOf(msg.RequestId)
	switch {
	case a == nil:
	case msg.Reason == messages.Reason_STOPPED, msg.Reason == messages.Reason_INTERNAL:
		m.StopFailed(messages.Reason_INTERNAL)
	case a.members.Stage() == requests.Releasing:
		m.onReleaseAnswered(a, requests.Reason(msg.Reason))
	default:
		m.Detail = msg.Detail
		m.restart(a, requests.Reason(msg.Reason))
	}
}

// Lost implements messages.OwnerHandler.
func (m *multiLockActor) Lost(_ ask.Recipient, msg *messages.Lost) {
	a, _ := m.attemptOf(msg.RequestId)
	if a == nil {
		return
	}
	if msg.Reason == messages.Reason_INTERNAL {
		m.StopFailed(messages.Reason_INTERNAL)
		return
	}
	why := requests.Reason(msg.Reason)
	switch a.members.PartLost(why) {
	case requests.Held:
		m.Detail = msg.Detail
		m.withdraw(a)
		m.forget(a)
		m.Lose(a.r.ID, why)
	case requests.Acquiring:
		m.restart(a, why)
	}
}

// Released implements messages.OwnerHandler.
func (m *multiLockActor) Released(_ ask.Recipient, msg *messages.Released) {
	if a, _ := m.attemptOf(msg.RequestId); a != nil {
		m.onReleaseAnswered(a, 0)
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (m *multiLockActor) RevokeRequested(_ ask.Recipient, msg *messages.RevokeRequested) {
	if a, _ := m.attemptOf(msg.RequestId); a != nil && a.members.Revoke() {
		m.RequestRevoke(a.r.ID)
	}
}

// ---- the end of attempts

// restart begins a request anew that the loss of a session or of a node has taken out of the
// queues. Any other reason ends the request. Other requests of the owner that wait may wait for
// the same nodes, so all of them leave before any begins anew.
func (m *multiLockActor) restart(a *attempt, why requests.Reason) {
	if why != requests.SessionLost && why != requests.NodeDeleted {
		m.end(a, why)
		return
	}
	if lost := m.LostBy(a.msg.Owner); lost != 0 {
		m.end(a, requests.Reason(lost))
		return
	}
	all := []*attempt{a}
	for _, other := range m.byOwner[a.msg.Owner] {
		if other != a && other.members.Stage() == requests.Acquiring {
			all = append(all, other)
		}
	}
	for _, a := range all {
		m.withdraw(a)
	}
	for _, a := range all {
		m.begin(a)
	}
}

// end ends a request, whatever members it has got so far.
func (m *multiLockActor) end(a *attempt, why requests.Reason) {
	if a != nil {
		m.withdraw(a)
		m.forget(a)
		m.RefuseRequest(a.r.ID, why)
	}
}

// withdraw releases or cancels all members, and ends the attempt.
func (m *multiLockActor) withdraw(a *attempt) {
	a.create.abort()
	for i, member := range m.Deps {
		messages.LockRef{To: member.Self}.SendCancel(&messages.Cancel{RequestId: a.memberID(i), Owner: a.msg.Owner}, m.Self)
	}
	a.queueing.over.Store(true)
	delete(m.attempts, a.id)
}

// forget forgets the request of an attempt.
func (m *multiLockActor) forget(a *attempt) {
	delete(m.byRequest, a.r.ID)
	m.byOwner.Remove(a.msg.Owner, func(o *attempt) bool { return o == a })
}

// onReleaseAnswered takes a member's answer to the release.
func (m *multiLockActor) onReleaseAnswered(a *attempt, why requests.Reason) {
	if !a.members.ReleaseAnswered(why) {
		return
	}
	delete(m.attempts, a.id)
	m.forget(a)
	if why := a.members.Reason(); why != 0 {
		m.RefuseRequest(a.r.ID, why)
		return
	}
	m.ConfirmRelease(a.r.ID, 0)
}

// Close implements shell.Behavior.
func (m *multiLockActor) Close(bool) {
	for _, id := range slices.Sorted(maps.Keys(m.attempts)) {
		m.withdraw(m.attempts[id])
	}
	m.EndAll(requests.Closed)
}

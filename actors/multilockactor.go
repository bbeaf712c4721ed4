package actors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// multiLock is the actor of a multi-lock. It asks the actors of its members on behalf of its
// owners: of all members at once, whose nodes one transaction then makes. With semaphores
// among them a request has two phases. First one transaction queues it at the gates of
// all semaphores; when it is past all of them, one transaction makes the leases of the
// semaphores and the nodes of all other members. A gate is left when its semaphore has
// granted the lease.
//
// No two requests wait for each other. Order the nodes of locks and leases by the
// transaction that made them, and within one by their place. In phase 2 a request waits
// only for holders and for nodes that come before its own in this order. In phase 1 it
// waits for requests in phase 2, which wait for none in phase 1, and for gates' nodes
// that come before its own. A request that one process keeps past the gate before it may
// ask for leases (see package semaphore) waits only for requests of phase 2.
type multiLock struct {
	requestTable
	semaphores int // of the members
	attempts   map[uint64]*attempt
	byID       map[requests.ID]*attempt
	byOwner    map[string][]*attempt
	last       uint64
}

// attempt is a request under way, or what it holds.
type attempt struct {
	r                *request
	msg              *messages.Acquire
	id               uint64
	atomicCreate     *atomicCreate
	queueingAttempt  *queueingAttempt
	queuesPassed     int                 // gates
	grants           []*messages.Granted // by member
	grantCount       int                 // of grants
	releasesAnswered int                 // members that have answered the release
	lost             bool                // its owner has yet to release it
	reason           messages.Reason     // why it was lost, or why the release was no success
}

// memberBits is how much of a member's request id is the member's number.
const memberBits = 8

func newMultiLock(r *actorEntry) host.Actor {
	m := &multiLock{requestTable: newRequestTable(r, nil), attempts: map[uint64]*attempt{}, byID: map[requests.ID]*attempt{}, byOwner: map[string][]*attempt{}}
	for i := range m.deps {
		if m.semaphore(i) {
			m.semaphores++
		}
	}
	return m
}

// semaphore reports whether a member is a semaphore.
func (m *multiLock) semaphore(i int) bool { return m.deps[i].recipe.permits > 0 }

// Receive implements host.Actor.
func (m *multiLock) Receive(from ask.Recipient, msg any) {
	if m.retired {
		m.Refuse(from, msg)
		return
	}
	switch msg := msg.(type) {
	case waitExpired:
		m.onWaitExpired(msg.id)
	case queuePassed:
		m.onQueuePassed(msg.requestID)
	case attemptRefused:
		if a := m.attempts[msg.attempt]; a != nil {
			m.detail = msg.detail
			m.end(a, msg.why)
			m.detail = ""
		}
	case tick:
		m.onTick(m.requests.Len() == 0)
	default:
		if !messages.DispatchLock(m, from, msg, from) && !messages.DispatchOwner(memberHandler{m}, struct{}{}, msg, nil) {
			m.receiveOther(msg)
		}
	}
}

// ---- said by owners

// Acquire implements messages.LockHandler.
func (m *multiLock) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	r := m.accept(from, msg, reply)
	if r == nil {
		return
	}
	if why := m.lostBy(msg.Owner); why != 0 {
		m.refuse(r, why) // no re-entry into what was lost
		return
	}
	m.begin(&attempt{r: r, msg: msg})
}

// lostBy returns why an owner lost what it has yet to release, or 0.
func (m *multiLock) lostBy(owner string) messages.Reason {
	for _, a := range m.byOwner[owner] {
		if a.lost {
			return a.reason
		}
	}
	return 0
}

// begin asks all members at once: for the nodes of all of them; or, with semaphores among
// them, for places at their gates, and whether the owner has something of the others.
func (m *multiLock) begin(a *attempt) {
	m.last++
	a.id, a.queuesPassed, a.grants, a.grantCount = m.last, 0, make([]*messages.Granted, len(m.deps)), 0
	a.queueingAttempt = &queueingAttempt{multi: m.self, attempt: a.id}
	a.atomicCreate = newAtomicCreate(m, a)
	m.remember(a)
	for i := range m.deps {
		m.ask(a, i, m.semaphores > 0 && !m.semaphore(i))
	}
}

func (m *multiLock) ask(a *attempt, i int, ahead bool) {
	ask.Send(m.deps[i].self, acquireMember{&messages.Acquire{RequestId: a.memberID(i), Owner: a.msg.Owner,
		Revocable: a.msg.Revocable, Data: a.msg.Data, Try: a.msg.Try, Kind: uint32(m.recipe.memberKinds[i])}, a.atomicCreate, ahead}, m.self)
}

// onQueuePassed begins the second phase when the request is past all gates.
func (m *multiLock) onQueuePassed(requestID uint64) {
	a, _ := memberHandler{m}.of(requestID)
	if a == nil {
		return
	}
	if a.queuesPassed++; a.queuesPassed < m.semaphores {
		return
	}
	a.atomicCreate = newAtomicCreate(m, a)
	for i, member := range m.deps {
		if m.semaphore(i) {
			ask.Send(member.self, proceedMessage{a.memberID(i), a.atomicCreate}, m.self)
		} else {
			m.ask(a, i, false)
		}
	}
}

func (a *attempt) memberID(i int) uint64 { return a.id<<memberBits | uint64(i) }

// Cancel implements messages.LockHandler.
func (m *multiLock) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := m.lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil && !r.released {
		m.end(m.byID[r.id], messages.Reason_CANCELLED)
	}
}

func (m *multiLock) onWaitExpired(id requests.ID) {
	if r := m.requests.At(id); r != nil && !r.granted {
		m.detail = fmt.Sprintf("after %v", r.waitLimit.duration)
		m.end(m.byID[id], messages.Reason_TIMED_OUT)
		m.detail = ""
	}
}

// Release implements messages.LockHandler.
func (m *multiLock) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	r := m.acceptRelease(from, msg, reply)
	if r == nil {
		return
	}
	switch a := m.byID[r.id]; {
	case a.lost:
		m.forget(a)
		m.refuse(r, a.reason)
	default:
		for i, member := range m.deps {
			messages.LockRef{To: member.self}.SendRelease(&messages.Release{RequestId: a.memberID(i)}, m.self)
		}
	}
}

// ---- said by members

// memberHandler keeps the handlers of an owner out of multi's own methods.
type memberHandler struct{ *multiLock }

// of is the attempt that a member answers, and which member that is.
func (m memberHandler) of(id uint64) (*attempt, int) {
	return m.attempts[id>>memberBits], int(id & (1<<memberBits - 1))
}

// Granted implements messages.OwnerHandler.
func (m memberHandler) Granted(_ struct{}, msg *messages.Granted) {
	a, i := m.of(msg.RequestId)
	if a == nil {
		return
	}
	a.grants[i] = msg
	if a.grantCount++; a.grantCount < len(a.grants) {
		return
	}
	first := a.grants[0] // the token is that of all: see group.whole
	all := messages.Granted{Path: first.Path, Node: first.Node, Generation: first.Generation, Czxid: first.Czxid, Step: first.Step,
		SessionId: first.SessionId, Epoch: first.Epoch}
	for _, part := range a.grants {
		all.Parts = append(all.Parts, parts(part)...)
	}
	m.grant(a.r, &all)
}

// parts are the nodes of one member.
func parts(granted *messages.Granted) []*messages.Granted {
	if len(granted.Parts) > 0 {
		return granted.Parts
	}
	return []*messages.Granted{granted}
}

// Refused implements messages.OwnerHandler.
func (m memberHandler) Refused(_ struct{}, msg *messages.Refused) {
	a, _ := m.of(msg.RequestId)
	switch {
	case a == nil:
	case a.r.released:
		m.onReleaseAnswered(a, msg.Reason)
	case msg.Reason == messages.Reason_STOPPED, msg.Reason == messages.Reason_INTERNAL:
		m.onMemberFailed()
	default:
		m.detail = msg.Detail
		m.restart(a, msg.Reason)
		m.detail = ""
	}
}

// Lost implements messages.OwnerHandler.
func (m memberHandler) Lost(_ struct{}, msg *messages.Lost) {
	a, _ := m.of(msg.RequestId)
	switch {
	case a == nil:
	case msg.Reason == messages.Reason_INTERNAL:
		m.onMemberFailed()
	case a.r.released: // the answer to the release may only say that there is nothing to release
		a.reason = msg.Reason
	case a.r.granted:
		m.detail = msg.Detail
		m.withdraw(a)
		if !a.r.anonymous {
			a.lost, a.reason = true, msg.Reason
			m.remember(a)
		}
		m.lose(a.r, msg.Reason)
		m.detail = ""
	default:
		m.restart(a, msg.Reason)
	}
}

// Released implements messages.OwnerHandler.
func (m memberHandler) Released(_ struct{}, msg *messages.Released) {
	if a, _ := m.of(msg.RequestId); a != nil {
		m.onReleaseAnswered(a, 0)
	}
}

// Suspended implements messages.OwnerHandler. All members tell; one is enough.
func (m memberHandler) Suspended(_ struct{}, msg *messages.Suspended) {
	if a, i := m.of(msg.RequestId); a != nil && i == 0 && a.r.granted && !a.r.released {
		messages.OwnerRef{To: a.r.reply.Recipient()}.Suspended(&messages.Suspended{RequestId: a.r.key.id})
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (m memberHandler) RevokeRequested(_ struct{}, msg *messages.RevokeRequested) {
	if a, _ := m.of(msg.RequestId); a != nil && a.r.granted && !a.r.released {
		m.revoke(a.r)
	}
}

// Contended implements messages.OwnerHandler. Nobody asked for it.
func (memberHandler) Contended(struct{}, *messages.Contended) {}

// ---- what follows

// restart begins anew what the loss of a session or a node has thrown out of the queues;
// any other reason ends the request. The owner's other requests that wait may stand on
// the same nodes, so all of them leave before any begins anew.
func (m *multiLock) restart(a *attempt, why messages.Reason) {
	if why != messages.Reason_SESSION_LOST && why != messages.Reason_NODE_DELETED {
		m.end(a, why)
		return
	}
	if lost := m.lostBy(a.msg.Owner); lost != 0 {
		m.end(a, lost)
		return
	}
	all := []*attempt{a}
	for _, other := range m.byOwner[a.msg.Owner] {
		if other != a && !other.r.granted {
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

// end ends a request, whatever it has got so far.
func (m *multiLock) end(a *attempt, why messages.Reason) {
	if a != nil {
		m.withdraw(a)
		m.refuse(a.r, why)
	}
}

// withdraw withdraws from all members.
func (m *multiLock) withdraw(a *attempt) {
	a.atomicCreate.abort()
	for i, member := range m.deps {
		messages.LockRef{To: member.self}.SendCancel(&messages.Cancel{RequestId: a.memberID(i)}, m.self)
	}
	m.forget(a)
}

func (m *multiLock) remember(a *attempt) {
	m.byID[a.r.id] = a
	if !a.lost {
		m.attempts[a.id] = a
	}
	if owner := a.msg.Owner; owner != "" {
		m.byOwner[owner] = append(m.byOwner[owner], a)
	}
}

func (m *multiLock) forget(a *attempt) {
	a.queueingAttempt.over.Store(true)
	delete(m.attempts, a.id)
	delete(m.byID, a.r.id)
	owner := a.msg.Owner
	if all := slices.DeleteFunc(m.byOwner[owner], func(o *attempt) bool { return o == a }); len(all) > 0 {
		m.byOwner[owner] = all
	} else {
		delete(m.byOwner, owner)
	}
}

// onReleaseAnswered takes a member's answer to the release.
func (m *multiLock) onReleaseAnswered(a *attempt, why messages.Reason) {
	a.reason = cmp.Or(a.reason, why)
	if a.releasesAnswered++; a.releasesAnswered < len(m.deps) {
		return
	}
	m.forget(a)
	if a.reason != 0 {
		m.refuse(a.r, a.reason)
		return
	}
	m.released(a.r, 0)
}

// onMemberFailed ends the multi-lock because a member has failed.
func (m *multiLock) onMemberFailed() {
	m.actorEntry.stopFailed()
	m.failAll()
}

// Stopped implements host.Actor.
func (m *multiLock) Stopped(failure any) {
	defer m.manager.running.Done()
	m.markStopped(failure)
	for _, id := range slices.Sorted(maps.Keys(m.attempts)) {
		a := m.attempts[id]
		m.withdraw(a)
	}
	if failure != nil {
		m.failAll()
		return
	}
	m.endAll(messages.Reason_CLOSED)
}

// Refuse implements host.Actor.
func (m *multiLock) Refuse(from ask.Recipient, msg any) {
	m.refuseAfterStop(from, msg)
}

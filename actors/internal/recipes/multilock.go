package recipes

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
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
	lock.Actor
	messages.IgnoreOwner[ask.Recipient]
	semaphores int                 // among the members
	attempts   map[uint64]*attempt // those that ask members or hold them, by id
	byRequest  requests.Table[attempt]
	byOwner    map[string]*attempt // which the owner's next request enters
	last       uint64              // attempt
	epoch      uint64              // of the latest grant; 0 once its session is lost
	untilTick  []*attempt          // that begin anew at the next tick
}

// attempt is one try to get all members, and then what its requests hold. It begins anew, with
// another id, if it loses a node while it waits.
type attempt struct {
	requests     []*lock.Request   // of one owner; the first has begun the attempt
	msg          *messages.Acquire // of the first
	id           uint64
	create       *atomicCreate
	try          bool // the first request is a Try; the others, which have entered, wait
	queuesPassed int
	members      requests.Parts[*messages.Granted]
	grants       []*messages.Granted // of the members; nil until all are granted
	repeats      int                 // how often it has begun anew
}

// memberBits is how many low bits of a member's request id are the number of the member.
const memberBits = 8

func newMultiLock(e *manager.Entry) host.Actor {
	m := &multiLockActor{attempts: map[uint64]*attempt{}, byOwner: map[string]*attempt{}}
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

// Acquire implements lock.Behavior.
func (m *multiLockActor) Acquire(r *lock.Request, msg *messages.Acquire) {
	if a := m.byOwner[msg.Owner]; a != nil {
		m.enter(a, r, msg)
		return
	}
	a := &attempt{requests: []*lock.Request{r}, msg: msg, try: msg.Try}
	m.byRequest.Put(r.ID, a)
	if msg.Owner != "" && m.semaphores == 0 { // a semaphore has no re-entry: it refuses the owner
		m.byOwner[msg.Owner] = a
	}
	m.begin(a)
}

// enter lets a further request of an owner share the owner's attempt.
func (m *multiLockActor) enter(a *attempt, r *lock.Request, msg *messages.Acquire) {
	if msg.Try && a.grants == nil {
		m.RefuseRequest(r.ID, requests.NotAcquired)
		return
	}
	a.requests = append(a.requests, r)
	m.byRequest.Put(r.ID, a)
	if a.grants != nil {
		m.grant(a, r)
	}
}

// begin asks all members at once: for the nodes of all of them; or, with semaphores among them,
// for places in their request queues, and whether the owner has something of the others.
func (m *multiLockActor) begin(a *attempt) {
	m.last++
	a.id, a.queuesPassed = m.last, 0
	m.attempts[a.id] = a
	a.members.Acquire(len(m.Deps))
	a.create = newAtomicCreate(m, a)
	for i := range m.Deps {
		m.askMember(a, i, m.semaphores > 0)
	}
}

func (m *multiLockActor) askMember(a *attempt, i int, queueing bool) {
	ask.Send(m.Deps[i].Self, acquireMember{&messages.Acquire{RequestId: a.memberID(i), Owner: a.msg.Owner,
		Revocable: a.msg.Revocable, Data: a.msg.Data, Try: a.try, Kind: uint32(m.Recipe.Members[i].Kind)}, a.create, queueing}, m.Self)
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

// Cancel implements lock.Behavior.
func (m *multiLockActor) Cancel(r *lock.Request, reason messages.Reason) {
	a := m.byRequest.At(r.ID)
	switch {
	case a.members.Stage() == requests.Releasing:
	case len(a.requests) > 1:
		m.leave(a, r)
		m.RefuseRequest(r.ID, requests.Reason(reason))
	default:
		m.end(a, requests.Reason(reason))
	}
}

// leave takes a request off its attempt. An owner that enters again leaves in reverse order.
func (m *multiLockActor) leave(a *attempt, r *lock.Request) {
	m.byRequest.Remove(r.ID)
	i := len(a.requests) - 1
	if a.requests[i] != r {
		i = slices.Index(a.requests, r)
	}
	a.requests = slices.Delete(a.requests, i, i+1)
}

// Release implements lock.Behavior.
func (m *multiLockActor) Release(r *lock.Request) {
	a := m.byRequest.At(r.ID)
	if n := len(a.requests) - 1; n > 0 {
		m.leave(a, r)
		m.ConfirmRelease(r.ID, n)
		return
	}
	delete(m.byOwner, a.msg.Owner) // the next request of the owner begins an attempt of its own
	a.members.Release()
	for i, member := range m.Deps {
		messages.LockRef{To: member.Self}.SendRelease(&messages.Release{RequestId: a.memberID(i), Owner: a.msg.Owner}, m.Self)
	}
}

// NodesOf returns the nodes of a request, for manager.OpenRequest.
func (m *multiLockActor) NodesOf(id requests.ID) []string {
	if a := m.byRequest.At(id); a != nil {
		return a.create.nodes()
	}
	return nil
}

// ReceiveOther implements lock.Behavior.
func (m *multiLockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case queuePassed:
		m.onQueuePassed(msg.requestID)
	case ownerLost:
		m.Detail = msg.detail
		m.end(m.attempts[msg.attempt], requests.Reason(msg.reason))
	default:
		return messages.DispatchOwner(m, from, msg, from)
	}
	return true
}

// Idle implements lock.Behavior. A multi-lock has nothing but its requests.
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
	a.grants = a.members.Granted(i, msg)
	if a.grants == nil {
		return
	}
	m.epoch = msg.Epoch
	for _, r := range a.requests {
		m.grant(a, r)
	}
}

// grant grants a request what its attempt holds.
func (m *multiLockActor) grant(a *attempt, r *lock.Request) {
	first := a.grants[0] // all members have its token: one transaction has created their nodes
	m.Grant(r, &messages.Granted{Path: first.Path, Node: first.Node, Generation: first.Generation, Czxid: first.Czxid, Step: first.Step,
		SessionId: first.SessionId, Epoch: first.Epoch, Parts: a.grants}, first.Step)
	if a.members.Revoked() {
		m.RequestRevoke(r.ID)
	}
}

// Refused implements messages.OwnerHandler.
func (m *multiLockActor) Refused(_ ask.Recipient, msg *messages.Refused) {
	a, _ := m.attemptOf(msg.RequestId)
	switch {
	case a == nil:
	case msg.Reason == messages.Reason_STOPPED, msg.Reason == messages.Reason_INTERNAL:
		m.StopFailed()
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
		m.StopFailed()
		return
	}
	why := requests.Reason(msg.Reason)
	switch a.members.PartLost(why) {
	case requests.Held:
		m.Detail = msg.Detail
		m.lose(a, why)
	case requests.Acquiring:
		m.restart(a, why)
	}
}

// lose ends the grants of an attempt that has lost a member. It releases the other members once no
// owner believes in them.
func (m *multiLockActor) lose(a *attempt, why requests.Reason) {
	delete(m.attempts, a.id)
	m.forget(a)
	for _, r := range a.requests {
		m.Lose(r.ID, why)
	}
	if !m.AwaitLossConfirmed(a.requests, func() { m.withdraw(a) }) {
		m.withdraw(a)
	}
}

// Epoch implements lock.Behavior.
func (m *multiLockActor) Epoch() uint64 { return m.epoch }

// SessionOverdue implements lock.Behavior: a release that leaves the members to another request
// does not ask them.
func (m *multiLockActor) SessionOverdue() {
	m.epoch = 0
	for _, id := range slices.Sorted(maps.Keys(m.attempts)) {
		if a := m.attempts[id]; a.members.Stage() == requests.Held {
			m.lose(a, requests.SessionLost)
		}
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
		for _, r := range a.requests {
			m.RequestRevoke(r.ID)
		}
	}
}

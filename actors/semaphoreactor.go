package actors

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// semaphoreActor is the actor of one semaphore in this process. It turns what owners and the two
// locks below say into what its semaphore.State is told, and performs the orders.
type semaphoreActor struct {
	requestTable
	bridge               messages.BridgeRef
	queueLock, leaseLock messages.LockRef
	state                *semaphore.State
	count                *permitCount  // nil if the number of permits is fixed
	requestOwner         string        // owner of the Acquire in hand
	atomicCreate         *atomicCreate // that the message in hand is a part of
}

// Where the two locks below are, in the order of recipe.upon.
const (
	requestQueueSuffix = "/locks"
	leaseSuffix        = "/leases"
)

func newSemaphore(r *actorEntry) host.Actor {
	p := &semaphoreActor{
		requestTable: newRequestTable(r, nil),
		bridge:       r.manager.bridge,
		queueLock:    messages.LockRef{To: r.deps[0].self},
		leaseLock:    messages.LockRef{To: r.deps[1].self},
	}
	if r.recipe.countPath == "" {
		p.state = semaphore.New(r.recipe.permits, true)
	} else {
		p.state = semaphore.New(unknownPermits, false)
		p.count = newPermitCount(p)
	}
	p.bridge.SendSubscribe(&messages.Subscribe{}, r.self)
	return p
}

const unknownPermits = -1

// Receive implements host.Actor.
func (p *semaphoreActor) Receive(from ask.Recipient, msg any) {
	if p.retired {
		p.Refuse(from, msg)
		return
	}
	switch msg := msg.(type) {
	case waitExpired:
		p.onWaitExpired(msg.id)
	case tick:
		p.tick()
	case acquireMember: // for its place at the gate
		p.atomicCreate = msg.atomicCreate
		p.Acquire(from, msg.Acquire, ask.ReplyTo[*messages.Granted](from))
	case proceedMessage:
		if r := p.lookup(from, "", msg.requestID); r != nil {
			p.atomicCreate = msg.atomicCreate
			p.state.Proceed(r.id)
		}
	default:
		switch {
		case messages.DispatchLock(p, from, msg, from):
		case from == nil && messages.DispatchOwner(leaseHandler{p}, struct{}{}, msg, nil):
		case from == nil && messages.DispatchBridgeClient(semaphoreBridgeHandler{p}, struct{}{}, msg, nil):
		default:
			p.receiveOther(msg)
		}
	}
	p.perform()
}

// ---- said by owners

// Acquire implements messages.LockHandler.
func (p *semaphoreActor) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	r := p.accept(from, msg, reply)
	switch {
	case r == nil:
	case p.count != nil && p.count.reason != 0:
		p.detail = p.count.problem
		p.refuse(r, p.count.reason)
		p.detail = ""
	default:
		p.requestOwner = msg.Owner
		if p.atomicCreate != nil && p.state.Has(msg.Owner) {
			p.atomicCreate.reportKnown(p.path, 0)
		}
		p.state.Acquire(semaphore.Acquire{ID: r.id, Owner: msg.Owner, MultiLock: p.atomicCreate != nil, Permits: int(max(msg.Permits, 1)), Try: msg.Try, Data: msg.Data, Revocable: msg.Revocable})
	}
}

// Cancel implements messages.LockHandler.
func (p *semaphoreActor) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := p.lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		p.state.Cancel(r.id, requests.Cancelled)
	}
}

// Release implements messages.LockHandler.
func (p *semaphoreActor) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	if r := p.acceptRelease(from, msg, reply); r != nil {
		p.state.Release(r.id)
	}
}

func (p *semaphoreActor) onWaitExpired(id requests.ID) {
	if r := p.requests.At(id); r != nil && !r.granted {
		p.detail = fmt.Sprintf("after %v", r.waitLimit.duration)
		p.state.Cancel(id, requests.TimedOut)
	}
}

func (p *semaphoreActor) tick() {
	if !p.onTick(p.state.Idle() && p.requests.Len() == 0) && p.count != nil {
		p.count.tick()
	}
}

// ---- said by the gate and the leases

// leaseHandler keeps the handlers of an owner out of pool's own methods.
type leaseHandler struct{ *semaphoreActor }

func (p leaseHandler) Granted(_ struct{}, msg *messages.Granted) {
	p.state.Granted(semaphore.Lease{Serial: msg.RequestId, Node: msg.Node,
		Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step, Session: msg.SessionId, Epoch: msg.Epoch})
}

func (p leaseHandler) Refused(_ struct{}, msg *messages.Refused) {
	if msg.Reason == messages.Reason_INTERNAL || msg.Reason == messages.Reason_STOPPED {
		p.onDepFailed()
		return
	}
	p.detail = msg.Detail
	p.state.Refused(msg.RequestId, requests.Reason(msg.Reason))
}

func (p leaseHandler) Released(_ struct{}, msg *messages.Released) { p.state.Released(msg.RequestId) }

func (p leaseHandler) Lost(_ struct{}, msg *messages.Lost) {
	if msg.Reason == messages.Reason_INTERNAL {
		p.onDepFailed()
		return
	}
	p.detail = msg.Detail
	p.state.Lost(msg.RequestId, requests.Reason(msg.Reason))
}

// Suspended is heard from the bridge, once for all.
func (leaseHandler) Suspended(struct{}, *messages.Suspended) {}

// RevokeRequested is for who holds the lease, though it may be one of several.
func (p leaseHandler) RevokeRequested(_ struct{}, msg *messages.RevokeRequested) {
	p.state.Revoke(msg.RequestId)
}

func (leaseHandler) Contended(struct{}, *messages.Contended) {}

// onDepFailed ends the semaphore because a lock below has failed.
func (p *semaphoreActor) onDepFailed() {
	p.actorEntry.stopFailed()
	p.failAll()
	p.state.Leave()
}

// ---- performing

func (p *semaphoreActor) perform() {
	var leases acquireLeases // of the request of
	var of requests.ID
	for _, o := range p.state.Effects() {
		if o.Kind != semaphore.AcquireLease || o.ID != of {
			p.askLeases(leases)
			leases, of = nil, o.ID
		}
		switch o.Kind {
		case semaphore.AcquireLease:
			leases = append(leases, &messages.Acquire{RequestId: o.Serial, Try: o.Try, Data: o.Data, Revocable: o.Revocable})
		case semaphore.EnterRequestQueue:
			p.ask(p.queueLock, &messages.Acquire{RequestId: o.Serial, Kind: uint32(queue.Own), Try: o.Try})
		case semaphore.ReportTurn:
			r := p.requests.At(o.ID)
			r.reply.Recipient().Tell(queuePassed{r.key.id})
		case semaphore.LeaveRequestQueue:
			p.queueLock.SendCancel(&messages.Cancel{RequestId: o.Serial}, p.self)
		case semaphore.WithdrawLease:
			p.leaseLock.SendCancel(&messages.Cancel{RequestId: o.Serial}, p.self)
		case semaphore.ReleaseLease:
			p.leaseLock.SendRelease(&messages.Release{RequestId: o.Serial}, p.self)
		case semaphore.Grant:
			p.grant(p.requests.At(o.ID), p.granted(o.Leases))
		case semaphore.Refuse:
			p.refuseWithReason(p.requests.At(o.ID), o.Reason)
		case semaphore.Lose:
			r := p.requests.At(o.ID)
			r.anonymous = true // forget it: nobody enters again
			p.lose(r, messages.Reason(o.Reason))
		case semaphore.ConfirmRelease:
			p.released(p.requests.At(o.ID), 0)
		case semaphore.RequestRevoke:
			p.revoke(p.requests.At(o.ID))
		}
	}
	p.askLeases(leases)
	p.detail, p.atomicCreate = "", nil
}

// ask sends a request to one of the locks below, whose node is made with those of the
// group in hand, if there is one.
func (p *semaphoreActor) ask(below messages.LockRef, msg *messages.Acquire) {
	if p.atomicCreate == nil {
		below.SendAcquire(msg, p.self)
		return
	}
	ask.Send(below.To, acquireMember{Acquire: msg, atomicCreate: p.atomicCreate}, p.self)
	p.atomicCreate = nil
}

// askLeases asks for the leases of one request. Those of another are another transaction's:
// the leases of one transaction have one token.
func (p *semaphoreActor) askLeases(leases acquireLeases) {
	switch {
	case len(leases) == 0:
	case p.atomicCreate != nil:
		p.ask(p.leaseLock, leases[0]) // a multi-lock has one permit of each semaphore
	default:
		ask.Send(p.leaseLock.To, leases, p.self)
	}
}

func (p *semaphoreActor) refuseWithReason(r *request, why requests.Reason) {
	if why == requests.WouldDeadlock {
		p.detail = fmt.Sprintf("owner %q has to release before it can have that of a %v", p.requestOwner, p.recipe)
	}
	p.refuse(r, messages.Reason(why))
}

// granted names nodes below the semaphore's path. The grant's token is that of the lease
// that was made last.
func (p *semaphoreActor) granted(leases []semaphore.Lease) *messages.Granted {
	one := func(l semaphore.Lease) *messages.Granted {
		return &messages.Granted{Path: p.path, Node: leaseSuffix[1:] + "/" + l.Node,
			Generation: l.Generation, Czxid: l.Czxid, Step: l.Step, SessionId: l.Session, Epoch: l.Epoch}
	}
	all := one(slices.MaxFunc(leases, func(a, b semaphore.Lease) int {
		return cmp.Or(cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(a.Step, b.Step))
	}))
	if len(leases) > 1 {
		for _, l := range leases {
			all.Parts = append(all.Parts, one(l))
		}
	}
	return all
}

// ---- the end

// Stopped implements host.Actor: nobody is left without an answer, and nothing of it
// in the locks below.
func (p *semaphoreActor) Stopped(failure any) {
	defer p.manager.running.Done()
	gaveUp := p.failed
	p.markStopped(failure)
	p.bridge.SendUnsubscribe(&messages.Unsubscribe{}, p.self)
	switch {
	case gaveUp:
		return
	case failure == nil:
		p.state.Close(requests.Closed)
	default:
		p.failAll()
		p.state.Effects() // what it has not come to
		p.state.Leave()
	}
	p.perform()
}

// Refuse implements host.Actor: it answers what comes after the end.
func (p *semaphoreActor) Refuse(from ask.Recipient, msg any) {
	p.refuseAfterStop(from, msg)
}

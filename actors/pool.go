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

// pool is the actor of one semaphore in this process. It turns what owners and the two
// locks below say into what its semaphore.State is told, and performs the orders.
type pool struct {
	desk
	bridge       messages.BridgeRef
	gate, leases messages.LockRef
	state        *semaphore.State
	count        *count // nil if the number of permits is fixed
	asking       string // owner of the Acquire in hand
	group        *group // that the message in hand is a part of
}

// Where the two locks below are, in the order of recipe.upon.
const (
	gateSuffix  = "/locks"
	leaseSuffix = "/leases"
)

func newPool(r *resident) host.Actor {
	p := &pool{
		desk:   newDesk(r, nil),
		bridge: r.manager.bridge,
		gate:   messages.LockRef{To: r.upon[0].self},
		leases: messages.LockRef{To: r.upon[1].self},
	}
	if r.recipe.shared == "" {
		p.state = semaphore.New(r.recipe.permits, true)
	} else {
		p.state = semaphore.New(unknownPermits, false)
		p.count = newCount(p)
	}
	p.bridge.SendSubscribe(&messages.Subscribe{}, r.self)
	return p
}

const unknownPermits = -1

// Receive implements host.Actor.
func (p *pool) Receive(from ask.Recipient, msg any) {
	if p.retired {
		p.Refuse(from, msg)
		return
	}
	switch msg := msg.(type) {
	case expired:
		p.expire(msg.id)
	case tick:
		p.tick()
	case acquireJoint: // for its place at the gate
		p.group = msg.group
		p.Acquire(from, msg.Acquire, ask.ReplyTo[*messages.Granted](from))
	case proceed:
		if r := p.find(from, "", msg.requestID); r != nil {
			p.group = msg.group
			p.state.Proceed(r.id)
		}
	default:
		switch {
		case messages.DispatchLock(p, from, msg, from):
		case from == nil && messages.DispatchOwner(below{p}, struct{}{}, msg, nil):
		case from == nil && messages.DispatchBridgeClient(above{p}, struct{}{}, msg, nil):
		default:
			p.unknown(msg)
		}
	}
	p.perform()
}

// ---- said by owners

// Acquire implements messages.LockHandler.
func (p *pool) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	r := p.open(from, msg, reply)
	switch {
	case r == nil:
	case p.count != nil && p.count.why != 0:
		p.detail = p.count.problem
		p.refuse(r, p.count.why)
		p.detail = ""
	default:
		p.asking = msg.Owner
		if p.group != nil && p.state.Has(msg.Owner) {
			p.group.has(p.path, 0)
		}
		p.state.Acquire(semaphore.Acquire{ID: r.id, Owner: msg.Owner, MultiLock: p.group != nil, Permits: int(max(msg.Permits, 1)), Try: msg.Try, Data: msg.Data, Revocable: msg.Revocable})
	}
}

// Cancel implements messages.LockHandler.
func (p *pool) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := p.find(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		p.state.Cancel(r.id, requests.Cancelled)
	}
}

// Release implements messages.LockHandler.
func (p *pool) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	if r := p.letGo(from, msg, reply); r != nil {
		p.state.Release(r.id)
	}
}

func (p *pool) expire(id requests.ID) {
	if r := p.requests.At(id); r != nil && !r.granted {
		p.detail = fmt.Sprintf("after %v", r.limit.wait)
		p.state.Cancel(id, requests.TimedOut)
	}
}

func (p *pool) tick() {
	if !p.rest(p.state.Idle() && p.requests.Len() == 0) && p.count != nil {
		p.count.tick()
	}
}

// ---- said by the gate and the leases

// below keeps the handlers of an owner out of pool's own methods.
type below struct{ *pool }

func (p below) Granted(_ struct{}, msg *messages.Granted) {
	p.state.Granted(semaphore.Lease{Serial: msg.RequestId, Node: msg.Node,
		Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step, Session: msg.SessionId, Epoch: msg.Epoch})
}

func (p below) Refused(_ struct{}, msg *messages.Refused) {
	if msg.Reason == messages.Reason_INTERNAL || msg.Reason == messages.Reason_STOPPED {
		p.fail()
		return
	}
	p.detail = msg.Detail
	p.state.Refused(msg.RequestId, requests.Reason(msg.Reason))
}

func (p below) Released(_ struct{}, msg *messages.Released) { p.state.Released(msg.RequestId) }

func (p below) Lost(_ struct{}, msg *messages.Lost) {
	if msg.Reason == messages.Reason_INTERNAL {
		p.fail()
		return
	}
	p.detail = msg.Detail
	p.state.Lost(msg.RequestId, requests.Reason(msg.Reason))
}

// Suspended is heard from the bridge, once for all.
func (below) Suspended(struct{}, *messages.Suspended) {}

// RevokeRequested is for who holds the lease, though it may be one of several.
func (p below) RevokeRequested(_ struct{}, msg *messages.RevokeRequested) {
	p.state.Revoke(msg.RequestId)
}

func (below) Contended(struct{}, *messages.Contended) {}

// fail ends the semaphore because a lock below has failed.
func (p *pool) fail() {
	p.resident.fail()
	p.giveUp()
	p.state.Leave()
}

// ---- performing

func (p *pool) perform() {
	var leases acquireAll // of the request of
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
			p.ask(p.gate, &messages.Acquire{RequestId: o.Serial, Kind: uint32(queue.Own), Try: o.Try})
		case semaphore.ReportTurn:
			r := p.requests.At(o.ID)
			r.reply.Recipient().Tell(passed{r.key.id})
		case semaphore.LeaveRequestQueue:
			p.gate.SendCancel(&messages.Cancel{RequestId: o.Serial}, p.self)
		case semaphore.WithdrawLease:
			p.leases.SendCancel(&messages.Cancel{RequestId: o.Serial}, p.self)
		case semaphore.ReleaseLease:
			p.leases.SendRelease(&messages.Release{RequestId: o.Serial}, p.self)
		case semaphore.Grant:
			p.grant(p.requests.At(o.ID), p.granted(o.Leases))
		case semaphore.Refuse:
			p.refuseFor(p.requests.At(o.ID), o.Reason)
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
	p.detail, p.group = "", nil
}

// ask sends a request to one of the locks below, whose node is made with those of the
// group in hand, if there is one.
func (p *pool) ask(below messages.LockRef, msg *messages.Acquire) {
	if p.group == nil {
		below.SendAcquire(msg, p.self)
		return
	}
	ask.Send(below.To, acquireJoint{Acquire: msg, group: p.group}, p.self)
	p.group = nil
}

// askLeases asks for the leases of one request. Those of another are another transaction's:
// the leases of one transaction have one token.
func (p *pool) askLeases(leases acquireAll) {
	switch {
	case len(leases) == 0:
	case p.group != nil:
		p.ask(p.leases, leases[0]) // a multi-lock has one permit of each semaphore
	default:
		ask.Send(p.leases.To, leases, p.self)
	}
}

func (p *pool) refuseFor(r *request, why requests.Reason) {
	if why == requests.WouldDeadlock {
		p.detail = fmt.Sprintf("owner %q has to release before it can have that of a %v", p.asking, p.recipe)
	}
	p.refuse(r, messages.Reason(why))
}

// granted names nodes below the semaphore's path. The grant's token is that of the lease
// that was made last.
func (p *pool) granted(leases []semaphore.Lease) *messages.Granted {
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
func (p *pool) Stopped(failure any) {
	defer p.manager.running.Done()
	gaveUp := p.failed
	p.stop(failure)
	p.bridge.SendUnsubscribe(&messages.Unsubscribe{}, p.self)
	switch {
	case gaveUp:
		return
	case failure == nil:
		p.state.Close(requests.Closed)
	default:
		p.giveUp()
		p.state.Effects() // what it has not come to
		p.state.Leave()
	}
	p.perform()
}

// Refuse implements host.Actor: it answers what comes after the end.
func (p *pool) Refuse(from ask.Recipient, msg any) {
	p.tooLate(from, msg)
}

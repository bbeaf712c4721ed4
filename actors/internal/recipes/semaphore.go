package recipes

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// semaphoreActor is the actor of one semaphore in this process. It feeds the messages of owners
// and of the two locks below to its semaphore.State, and performs what that asks for.
type semaphoreActor struct {
	shell.Shell
	shell.Defaults
	messages.IgnoreOwner[ask.Recipient]
	messages.IgnoreBridgeClient[ask.Recipient]
	bridge messages.BridgeRef
	queue  messages.LockRef // the request queue
	leases messages.LockRef
	state  *semaphore.State
	count  *permitCount // nil if the number of permits is fixed
	// unlistedIn is the epoch in which the directory is to be listed at the next tick: the read does not delay the first
	// requests, and spares a semaphore that goes before.
	unlistedIn uint64
	create     *atomicCreate // of the message in hand; nil if that is not of a multi-lock
}

// Where the two locks below are, in the order of Recipe.Deps.
const (
	// RequestQueueSuffix makes the path of a semaphore's request queue.
	RequestQueueSuffix = "/locks"
	// LeaseSuffix makes the path of a semaphore's leases.
	LeaseSuffix = "/leases"
)

func newSemaphore(e *shell.Entry) host.Actor {
	s := &semaphoreActor{
		bridge: e.Manager.Bridge.Ref(),
		queue:  messages.LockRef{To: e.Deps[0].Self},
		leases: messages.LockRef{To: e.Deps[1].Self},
	}
	s.Init(e, s)
	if e.Recipe.CountPath == "" {
		s.state = semaphore.New(s, e.Recipe.Permits, true)
	} else {
		s.state = semaphore.New(s, unknownPermits, false)
		s.count = newPermitCount(s)
	}
	s.bridge.SendSubscribe(&messages.Subscribe{}, e.Self)
	return s
}

const unknownPermits = -1

// ---- messages of owners

// Acquire implements shell.Behavior.
func (s *semaphoreActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	if s.count != nil && s.count.reason != 0 {
		s.Detail = s.count.problem
		s.RefuseRequest(r.ID, requests.Reason(s.count.reason))
		return
	}
	if s.create != nil && s.state.Has(msg.Owner) { // there is no re-entry into a multi-lock with semaphores
		s.RefuseRequest(r.ID, requests.WouldDeadlock)
		return
	}
	e := incoming(r, msg)
	e.MultiLock = s.create != nil
	s.state.Acquire(e)
}

// Cancel implements shell.Behavior.
func (s *semaphoreActor) Cancel(r *shell.Request, reason messages.Reason) {
	s.state.Cancel(r.ID, requests.Reason(reason))
}

// Release implements shell.Behavior.
func (s *semaphoreActor) Release(r *shell.Request) { s.state.Release(r.ID) }

// ReceiveOther implements shell.Behavior.
func (s *semaphoreActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		s.create = msg.create
		if msg.queueing {
			if r := s.Accept(from, msg.Acquire); r != nil {
				s.Acquire(r, msg.Acquire)
			}
		} else if r := s.Lookup(from, msg.Owner, msg.RequestId); r != nil {
			s.state.Proceed(r.ID)
		}
		s.create = nil
	default:
		known := from == nil && (messages.DispatchOwner(s, from, msg, nil) || messages.DispatchBridgeClient(s, from, msg, nil))
		invariants.Check(s.state)
		return known
	}
	return true
}

// Idle implements shell.Behavior.
func (s *semaphoreActor) Idle() bool { return s.state.Idle() }

// Tick implements shell.Behavior.
func (s *semaphoreActor) Tick(bool) {
	if s.count != nil && s.count.readAgain {
		s.count.read()
	}
	if s.unlistedIn != 0 {
		s.listDirectory(s.unlistedIn)
		s.unlistedIn = 0
	}
}

// ---- messages of the request queue and the leases

// Granted implements messages.OwnerHandler. It ignores grants of a lost session: Lost follows.
func (s *semaphoreActor) Granted(_ ask.Recipient, msg *messages.Granted) {
	if s.Manager.Bridge.Lost(msg.Epoch) {
		return
	}
	s.state.Granted(semaphore.Lease{Serial: msg.RequestId, Node: msg.Node,
		Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step, Session: msg.SessionId, Epoch: msg.Epoch})
}

// Refused implements messages.OwnerHandler.
func (s *semaphoreActor) Refused(_ ask.Recipient, msg *messages.Refused) {
	if msg.Reason == messages.Reason_INTERNAL || msg.Reason == messages.Reason_STOPPED {
		s.StopFailed(messages.Reason_INTERNAL)
		return
	}
	s.Detail = msg.Detail
	s.state.Refused(msg.RequestId, requests.Reason(msg.Reason))
}

// Released implements messages.OwnerHandler.
func (s *semaphoreActor) Released(_ ask.Recipient, msg *messages.Released) {
	s.state.Released(msg.RequestId)
}

// Lost implements messages.OwnerHandler.
func (s *semaphoreActor) Lost(_ ask.Recipient, msg *messages.Lost) {
	if msg.Reason == messages.Reason_INTERNAL {
		s.StopFailed(messages.Reason_INTERNAL)
		return
	}
	s.Detail = msg.Detail
	s.state.Lost(msg.RequestId, requests.Reason(msg.Reason))
}

// RevokeRequested implements messages.OwnerHandler. The holder of the lease hears of it, though
// the lease may be one of several.
func (s *semaphoreActor) RevokeRequested(_ ask.Recipient, msg *messages.RevokeRequested) {
	s.state.Revoke(msg.RequestId)
}

// ---- what the state asks for: semaphoreActor is a semaphore.PermitActor

// EnterRequestQueue implements semaphore.PermitActor.
func (s *semaphoreActor) EnterRequestQueue(serial uint64, r requests.Incoming) {
	s.ask(s.queue, &messages.Acquire{RequestId: serial, Kind: uint32(queue.ProcessExclusive), Try: r.Try, Data: s.dataBelow(nil, r.Owner)})
}

// LeaveRequestQueue implements semaphore.PermitActor.
func (s *semaphoreActor) LeaveRequestQueue(serial uint64) {
	s.queue.SendCancel(&messages.Cancel{RequestId: serial}, s.Self)
}

// AcquireLeases implements semaphore.PermitActor. The leases of one transaction have one token.
func (s *semaphoreActor) AcquireLeases(r requests.Incoming, serials []uint64) {
	var all acquireLeases
	for _, serial := range serials {
		all = append(all, &messages.Acquire{RequestId: serial, Try: r.Try, Data: s.dataBelow(r.Data, r.Owner), Revocable: r.Revocable})
	}
	if s.create != nil {
		s.ask(s.leases, all[0]) // a multi-lock has one permit of each semaphore
		return
	}
	ask.Send(s.leases.To, all, s.Self)
}

// WithdrawLease implements semaphore.PermitActor.
func (s *semaphoreActor) WithdrawLease(serial uint64) {
	s.leases.SendCancel(&messages.Cancel{RequestId: serial}, s.Self)
}

// ReleaseLease implements semaphore.PermitActor.
func (s *semaphoreActor) ReleaseLease(serial uint64) {
	s.leases.SendRelease(&messages.Release{RequestId: serial}, s.Self)
}

// ReportTurn implements semaphore.PermitActor.
func (s *semaphoreActor) ReportTurn(id requests.ID) {
	r := s.Request(id)
	r.Tell(queuePassed{r.Number()})
}

// dataBelow returns the data of a request to one of the locks below, which do not know the owner. For
// an owner without a name it returns data: the lock below knows as much.
func (s *semaphoreActor) dataBelow(data []byte, owner string) []byte {
	if owner == "" {
		return data
	}
	return s.Manager.NodeData(data, owner)
}

// ask sends a request to one of the locks below. If the message in hand is of a multi-lock, the
// node is part of its atomic create.
func (s *semaphoreActor) ask(below messages.LockRef, msg *messages.Acquire) {
	if s.create == nil {
		below.SendAcquire(msg, s.Self)
		return
	}
	ask.Send(below.To, acquireMember{Acquire: msg, create: s.create}, s.Self)
	s.create = nil
}

// RefuseRequest implements semaphore.PermitActor.
func (s *semaphoreActor) RefuseRequest(id requests.ID, why requests.Reason) {
	if why == requests.WouldDeadlock {
		s.Detail = fmt.Sprintf("owner %q has to release permits before it can have as many of a %v", s.Request(id).OwnerName(), s.Recipe)
	}
	s.Shell.RefuseRequest(id, why)
}

// GrantLeases implements semaphore.PermitActor. It names nodes below the semaphore's path. The grant has the
// token of the lease that was created last.
func (s *semaphoreActor) GrantLeases(id requests.ID, leases []semaphore.Lease) {
	one := func(l semaphore.Lease) *messages.Granted {
		return &messages.Granted{Path: s.Path, Node: LeaseSuffix[1:] + "/" + l.Node,
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
	s.Grant(s.Request(id), all)
}

// ---- the end

// Close implements shell.Behavior.
func (s *semaphoreActor) Close(bool) {
	s.bridge.SendUnsubscribe(&messages.Unsubscribe{}, s.Self)
	s.EndAll(requests.Closed)
	s.state.Leave()
}

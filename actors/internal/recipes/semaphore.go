package recipes

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// semaphoreActor is the actor of one semaphore in this process. It feeds the messages of owners
// and the answers of its two directories to its semaphore.State, and performs what that asks for.
type semaphoreActor struct {
	lock.Actor
	directories
	turn     turn
	queue    below // the request queue
	leases   below
	state    *semaphore.State
	count    *permitCount  // nil if the number of permits is fixed
	unlisted bool          // the directory is to be listed at the next tick: the read does not delay the first requests
	create   *atomicCreate // of the message in hand; nil if that is not of a multi-lock
	losing   *lock.Request // loses a lease by the call in hand, and its other leases with it; or nil
}

func newSemaphore(e *manager.Entry) host.Actor {
	s := &semaphoreActor{}
	s.Init(e, s)
	s.directories.Actor = &s.Actor
	requestQueue, leases := e.Recipe.Directories[0], e.Recipe.Directories[1]
	s.first = s.newDirectory(e.Path+requestQueue.Suffix, requestQueue.Recipe, &s.queue)
	second := s.newDirectory(e.Path+leases.Suffix, leases.Recipe, &s.leases)
	second.second = true
	s.second = &second
	s.queue = below{turn: &s.turn, directory: &s.first, machine: s}
	s.leases = below{turn: &s.turn, directory: s.second, machine: s}
	if e.Recipe.CountPath == "" {
		s.state = semaphore.New(s, e.Recipe.Permits, true)
	} else {
		s.state = semaphore.New(s, unknownPermits, false)
		s.count = newPermitCount(s)
	}
	s.beginSession(s)
	return s
}

const unknownPermits = -1

// ---- messages of owners

// Acquire implements lock.Behavior.
func (s *semaphoreActor) Acquire(r *lock.Request, msg *messages.Acquire) {
	if s.count != nil && s.count.reason != 0 && !s.count.retry() {
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
	s.finish()
}

// Cancel implements lock.Behavior.
func (s *semaphoreActor) Cancel(r *lock.Request, reason messages.Reason) {
	s.state.Cancel(r.ID, requests.Reason(reason))
	s.finish()
}

// Release implements lock.Behavior.
func (s *semaphoreActor) Release(r *lock.Request) {
	s.state.Release(r.ID)
	s.finish()
}

// NodesOf returns the nodes of a request, for manager.OpenRequest.
func (s *semaphoreActor) NodesOf(id requests.ID) []string {
	queue, leases := s.state.SerialsOf(id)
	nodes := []string{s.first.state.NodeOf(s.queue.bySerial[queue])}
	for _, serial := range leases {
		nodes = append(nodes, s.second.state.NodeOf(s.leases.bySerial[serial]))
	}
	return nodes
}

// finish ends a turn.
func (s *semaphoreActor) finish() {
	s.turn.finish()
	invariants.Check(s.state)
}

// ReceiveOther implements lock.Behavior.
func (s *semaphoreActor) ReceiveOther(from ask.Recipient, msg any) bool {
	defer s.finish()
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
	case countAnswer:
		messages.DispatchBridgeClient(s.count, from, msg.answer, from)
	case listAnswer:
		if listed, is := msg.answer.(*messages.Listed); is {
			reportOthers(s.Manager, s.Path, s.Recipe, slices.DeleteFunc(listed.Children, isOfSemaphore))
		}
	default:
		return messages.DispatchBridgeClient(s, from, msg, from)
	}
	return true
}

// SessionChanged implements messages.BridgeClientHandler.
func (s *semaphoreActor) SessionChanged(from ask.Recipient, msg *messages.SessionChanged) {
	s.directories.SessionChanged(from, msg)
	if msg.State == messages.SessionState_CONNECTED {
		s.unlisted = true
		if s.count != nil {
			s.count.read()
		}
	}
}

// Idle implements lock.Behavior.
func (s *semaphoreActor) Idle() bool { return s.state.Idle() && s.directories.Idle() }

// SessionOverdue implements lock.Behavior.
func (s *semaphoreActor) SessionOverdue() {
	s.directories.SessionOverdue()
	s.finish()
}

// Tick implements lock.Behavior.
func (s *semaphoreActor) Tick(quiet bool) {
	s.directories.Tick(quiet)
	if s.count != nil && s.count.readAgain {
		s.count.read()
	}
	if s.unlisted && !s.lost {
		s.bridge().SendList(&messages.List{Epoch: s.epoch, Directory: s.Path}, listRecipient{s.Self})
		s.unlisted = false
	}
	s.finish()
	if quiet {
		s.queue.releaseMemory()
		s.leases.releaseMemory()
	}
}

// listRecipient gets the answer to the question what the semaphore's own directory holds.
type listRecipient struct{ self *host.Ref }

type listAnswer struct{ answer any }

// Tell implements ask.Recipient.
func (l listRecipient) Tell(answer any) { l.self.Tell(listAnswer{answer}) }

// isOfSemaphore reports whether a child of a semaphore's directory is one of the directories of its
// locks.
func isOfSemaphore(name string) bool {
	return name == queue.RequestQueueSuffix[1:] || name == queue.LeasesSuffix[1:]
}

// ---- what the directories answer: semaphoreActor is the machine above them

// nodeGranted implements machine.
func (s *semaphoreActor) nodeGranted(serial uint64, node string, token requests.Token) {
	s.state.Granted(semaphore.Lease{Serial: serial, Node: node, Token: token})
}

// nodeRefused implements machine.
func (s *semaphoreActor) nodeRefused(serial uint64, why requests.Reason) {
	s.state.Refused(serial, why)
}

// nodeLost implements machine.
func (s *semaphoreActor) nodeLost(serial uint64, why requests.Reason) {
	s.state.Lost(serial, why)
	s.losing = nil
}

// Lose implements semaphore.PermitActor.
func (s *semaphoreActor) Lose(id requests.ID, why requests.Reason) {
	s.losing = s.Request(id)
	s.Actor.Lose(id, why)
}

// nodeReleased implements machine.
func (s *semaphoreActor) nodeReleased(serial uint64) { s.state.Released(serial) }

// nodeRevoked implements machine. The holder of the lease hears of it, though
// the lease may be one of several.
func (s *semaphoreActor) nodeRevoked(serial uint64) { s.state.Revoke(serial) }

// nodeContended implements machine: no request asks for that.
func (s *semaphoreActor) nodeContended(uint64) {}

// ---- what the state asks for: semaphoreActor is a semaphore.PermitActor

// EnterRequestQueue implements semaphore.PermitActor.
func (s *semaphoreActor) EnterRequestQueue(serial uint64, r requests.Incoming) {
	s.queue.acquire(serial, requests.Incoming{Kind: queue.ProcessExclusive, Permits: 1, Try: r.Try, Data: s.dataBelow(nil, r.Owner)}, s.takeCreate())
}

// LeaveRequestQueue implements semaphore.PermitActor.
func (s *semaphoreActor) LeaveRequestQueue(serial uint64) { s.queue.cancel(serial) }

// AcquireLeases implements semaphore.PermitActor. The leases of one transaction have one token.
func (s *semaphoreActor) AcquireLeases(r requests.Incoming, serials []uint64) {
	lease := requests.Incoming{Permits: 1, Try: r.Try, Data: s.dataBelow(r.Data, r.Owner), Revocable: r.Revocable}
	if with := s.takeCreate(); with != nil {
		s.leases.acquire(serials[0], lease, with) // a multi-lock has one permit of each semaphore
		return
	}
	s.leases.acquireTogether(serials, lease)
}

// takeCreate returns the atomic create of the message in hand, of which the next node is a part.
func (s *semaphoreActor) takeCreate() *atomicCreate {
	with := s.create
	s.create = nil
	return with
}

// WithdrawLease implements semaphore.PermitActor. The other leases of a lost grant are given up once
// its owner does not believe in them.
func (s *semaphoreActor) WithdrawLease(serial uint64) {
	if s.losing != nil && s.AwaitDisbelief([]*lock.Request{s.losing}, func() { s.leases.cancel(serial); s.finish() }) {
		return
	}
	s.leases.cancel(serial)
}

// ReleaseLease implements semaphore.PermitActor.
func (s *semaphoreActor) ReleaseLease(serial uint64) { s.leases.release(serial) }

// ReportTurn implements semaphore.PermitActor.
func (s *semaphoreActor) ReportTurn(id requests.ID) {
	r := s.Request(id)
	r.Tell(queuePassed{r.Number()})
}

// dataBelow returns the data of a request to one of the directories, which do not know the owner.
// For an owner without a name it returns data: the directory knows as much.
func (s *semaphoreActor) dataBelow(data []byte, owner string) []byte {
	if owner == "" {
		return data
	}
	return s.Manager.NodeData(data, owner)
}

// RefuseRequest implements semaphore.PermitActor.
func (s *semaphoreActor) RefuseRequest(id requests.ID, why requests.Reason) {
	if why == requests.WouldDeadlock {
		s.Detail = fmt.Sprintf("owner %q has to release permits before it can have as many of a %v", s.Request(id).OwnerName(), s.Recipe)
	}
	s.Actor.RefuseRequest(id, why)
}

// GrantLeases implements semaphore.PermitActor. It names nodes below the semaphore's path. The
// grant has the token of the lease that was created last.
func (s *semaphoreActor) GrantLeases(id requests.ID, leases []semaphore.Lease) {
	one := func(l semaphore.Lease) *messages.Granted {
		return s.granted(s.Path, queue.LeasesSuffix[1:]+"/"+l.Node, l.Token)
	}
	all := one(slices.MaxFunc(leases, func(a, b semaphore.Lease) int { return a.Token.Compare(b.Token) }))
	if len(leases) > 1 {
		for _, l := range leases {
			all.Parts = append(all.Parts, one(l))
		}
	}
	s.Grant(s.Request(id), all)
}

// ---- the end

// Close implements lock.Behavior.
func (s *semaphoreActor) Close(failed bool) {
	if s.count != nil {
		s.bridge().SendUnsubscribe(&messages.Unsubscribe{}, s.count)
	}
	s.EndAll(requests.Closed)
	s.turn.over = true
	s.directories.Close(failed)
}

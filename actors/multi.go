package actors

import (
	"cmp"
	"fmt"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// multi is the actor of a multi-lock. It asks the actors of its members on behalf of its
// owners.
type multi struct {
	desk
	attempts map[uint64]*attempt
	byID     map[queue.ID]*attempt
	last     uint64
}

// attempt is a request under way, or what it holds.
type attempt struct {
	r      *request
	msg    *messages.Acquire
	id     uint64
	group  *group
	grants []*messages.Granted // by member
	got    int                 // of grants
	ended  int                 // members that have answered the release
	lost   bool                // its owner has yet to release it
	why    messages.Reason     // why it was lost, or why the release was no success
}

// memberBits is how much of a member's request id is the member's number.
const memberBits = 8

func newMulti(r *resident) host.Actor {
	return &multi{desk: newDesk(r, nil), attempts: map[uint64]*attempt{}, byID: map[queue.ID]*attempt{}}
}

// Receive implements host.Actor.
func (m *multi) Receive(from ask.Recipient, msg any) {
	if m.retired {
		m.Refuse(from, msg)
		return
	}
	switch msg := msg.(type) {
	case expired:
		m.expire(msg.id)
	case tick:
		m.rest(m.requests.Len() == 0)
	default:
		if !messages.DispatchLock(m, from, msg, from) && !messages.DispatchOwner(members{m}, struct{}{}, msg, nil) {
			m.unknown(msg)
		}
	}
}

// ---- said by owners

// Acquire implements messages.LockHandler.
func (m *multi) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	r := m.open(from, msg, reply)
	if r == nil {
		return
	}
	if why := m.lostBy(msg.Owner); why != 0 {
		m.refuse(r, why) // no re-entry into what was lost
		return
	}
	m.begin(&attempt{r: r, msg: msg})
}

// lostBy is why an owner lost what it has yet to release, or 0.
func (m *multi) lostBy(owner string) messages.Reason {
	if owner != "" {
		for _, a := range m.byID {
			if a.lost && a.msg.Owner == owner {
				return a.why
			}
		}
	}
	return 0
}

// begin asks all members at once.
func (m *multi) begin(a *attempt) {
	m.last++
	n := len(m.upon)
	a.id, a.group, a.grants, a.got = m.last, newGroup(m.manager.zk.Bridge, n), make([]*messages.Granted, n), 0
	m.attempts[a.id], m.byID[a.r.id] = a, a
	for i, member := range m.upon {
		ask.Send(member.self, acquireJoint{&messages.Acquire{RequestId: a.memberID(i), Owner: a.msg.Owner,
			Revocable: a.msg.Revocable, Data: a.msg.Data, Try: a.msg.Try, Kind: uint32(m.recipe.parts[i])}, a.group}, m.self)
	}
}

func (a *attempt) memberID(i int) uint64 { return a.id<<memberBits | uint64(i) }

// Cancel implements messages.LockHandler.
func (m *multi) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := m.find(from, msg.GetOwner(), msg.GetRequestId()); r != nil && !r.released {
		m.end(m.byID[r.id], messages.Reason_CANCELLED)
	}
}

func (m *multi) expire(id queue.ID) {
	if r := m.requests.At(id); r != nil && !r.granted {
		m.detail = fmt.Sprintf("after %v", r.limit.wait)
		m.end(m.byID[id], messages.Reason_TIMED_OUT)
		m.detail = ""
	}
}

// Release implements messages.LockHandler.
func (m *multi) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	r := m.letGo(from, msg, reply)
	if r == nil {
		return
	}
	switch a := m.byID[r.id]; {
	case a.lost:
		m.forget(a)
		m.refuse(r, a.why)
	default:
		for i, member := range m.upon {
			messages.LockRef{To: member.self}.SendRelease(&messages.Release{RequestId: a.memberID(i)}, m.self)
		}
	}
}

// ---- said by members

// members keeps the handlers of an owner out of multi's own methods.
type members struct{ *multi }

// of is the attempt that a member answers, and which member that is.
func (m members) of(id uint64) (*attempt, int) {
	return m.attempts[id>>memberBits], int(id & (1<<memberBits - 1))
}

// Granted implements messages.OwnerHandler.
func (m members) Granted(_ struct{}, msg *messages.Granted) {
	a, i := m.of(msg.RequestId)
	if a == nil {
		return
	}
	a.grants[i] = msg
	if a.got++; a.got < len(a.grants) {
		return
	}
	all := messages.Granted{Path: a.grants[0].Path, Node: a.grants[0].Node, SessionId: msg.SessionId, Epoch: msg.Epoch}
	for _, part := range a.grants {
		all.Parts = append(all.Parts, parts(part)...)
		if token := TokenOf(part); token.Compare(TokenOf(&all)) > 0 {
			all.Generation, all.Czxid, all.Step = token.Generation, token.Czxid, token.Step
		}
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
func (m members) Refused(_ struct{}, msg *messages.Refused) {
	a, _ := m.of(msg.RequestId)
	switch {
	case a == nil:
	case a.r.released:
		m.ended(a, msg.Reason)
	case msg.Reason == messages.Reason_STOPPED, msg.Reason == messages.Reason_INTERNAL:
		m.fail()
	default:
		m.detail = msg.Detail
		m.again(a, msg.Reason)
		m.detail = ""
	}
}

// Lost implements messages.OwnerHandler.
func (m members) Lost(_ struct{}, msg *messages.Lost) {
	a, _ := m.of(msg.RequestId)
	switch {
	case a == nil:
	case msg.Reason == messages.Reason_INTERNAL:
		m.fail()
	case a.r.released: // the answer to the release may only say that there is nothing to release
		a.why = msg.Reason
	case a.r.granted:
		m.detail = msg.Detail
		m.giveBack(a)
		if !a.r.anonymous {
			a.lost, a.why, m.byID[a.r.id] = true, msg.Reason, a
		}
		m.lose(a.r, msg.Reason)
		m.detail = ""
	default:
		m.again(a, msg.Reason)
	}
}

// Released implements messages.OwnerHandler.
func (m members) Released(_ struct{}, msg *messages.Released) {
	if a, _ := m.of(msg.RequestId); a != nil {
		m.ended(a, 0)
	}
}

// Suspended implements messages.OwnerHandler. All members tell; one is enough.
func (m members) Suspended(_ struct{}, msg *messages.Suspended) {
	if a, i := m.of(msg.RequestId); a != nil && i == 0 && a.r.granted && !a.r.released {
		messages.OwnerRef{To: a.r.reply.Recipient()}.Suspended(&messages.Suspended{RequestId: a.r.key.id})
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (m members) RevokeRequested(_ struct{}, msg *messages.RevokeRequested) {
	if a, _ := m.of(msg.RequestId); a != nil && a.r.granted && !a.r.released {
		m.revoke(a.r)
	}
}

// Contended implements messages.OwnerHandler. Nobody asked for it.
func (members) Contended(struct{}, *messages.Contended) {}

// ---- what follows

// again begins anew what the loss of a session or a node has thrown out of the queues;
// any other reason ends the request.
func (m *multi) again(a *attempt, why messages.Reason) {
	if why != messages.Reason_SESSION_LOST && why != messages.Reason_NODE_DELETED || m.lostBy(a.msg.Owner) != 0 {
		m.end(a, why)
		return
	}
	m.giveBack(a)
	m.begin(a)
}

// end ends a request, whatever it has got so far.
func (m *multi) end(a *attempt, why messages.Reason) {
	if a != nil {
		m.giveBack(a)
		m.refuse(a.r, why)
	}
}

// giveBack withdraws from all members.
func (m *multi) giveBack(a *attempt) {
	a.group.abort()
	for i, member := range m.upon {
		messages.LockRef{To: member.self}.SendCancel(&messages.Cancel{RequestId: a.memberID(i)}, m.self)
	}
	m.forget(a)
}

func (m *multi) forget(a *attempt) {
	delete(m.attempts, a.id)
	delete(m.byID, a.r.id)
}

// ended takes a member's answer to the release.
func (m *multi) ended(a *attempt, why messages.Reason) {
	a.why = cmp.Or(a.why, why)
	if a.ended++; a.ended < len(m.upon) {
		return
	}
	m.forget(a)
	if a.why != 0 {
		m.refuse(a.r, a.why)
		return
	}
	m.released(a.r, 0)
}

// fail ends the multi-lock because a member has failed.
func (m *multi) fail() {
	m.resident.fail()
	m.giveUp()
}

// Stopped implements host.Actor.
func (m *multi) Stopped(failure any) {
	defer m.manager.running.Done()
	m.stop(failure)
	for _, a := range m.attempts {
		m.giveBack(a)
	}
	if failure != nil {
		m.giveUp()
		return
	}
	m.endAll(messages.Reason_CLOSED)
}

// Refuse implements host.Actor.
func (m *multi) Refuse(from ask.Recipient, msg any) {
	m.tooLate(from, msg)
}

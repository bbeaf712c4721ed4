package actors

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// requestTable is where an actor deals with owners: it keeps who asked for what, and answers.
// Every actor that gives locks has one.
type requestTable struct {
	*actorEntry
	handler    requestHandler
	requests   *requests.Table[request]   // nil while there are none for long, as ids
	ids        map[requestKey]requests.ID // but those of claims, which remember theirs
	senders    map[host.Identity]*watchedSender
	reusable   []*request // dropped, for re-use
	lastNumber uint64     // number of a request
	detail     string     // more about the event in hand, for those who are answered
}

// requestHandler is the actor of a desk, where it decides on what owners say.
type requestHandler interface {
	acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire)
	cancel(id requests.ID, why requests.Reason)
	release(id requests.ID)
}

func newRequestTable(r *actorEntry, decider requestHandler) requestTable {
	return requestTable{actorEntry: r, handler: decider}
}

// request is an Acquire as the desk remembers it.
type request struct {
	id            requests.ID
	key           requestKey
	waitLimit     *waitLimit // nil if it waits for ever
	anonymous     bool
	fromLockActor bool // see front
	try           bool
	granted       bool
	released      bool
	lost          bool
	revokeSent    bool            // it was told so
	cancelReason  messages.Reason // of a withdrawal by the desk itself, rather than CANCELLED
	source        *requestSource  // nil unless an actor, or a future, has sent it
	reply         ask.Reply[*messages.Granted]
	release       ask.Reply[*messages.Released] // once it was released
}

// waitLimit is how long a request waits.
type waitLimit struct {
	duration time.Duration
	timer    *time.Timer
}

// requestKey is how owners name their requests: by who they are and a number of their own.
type requestKey struct {
	from  any    // the claim of Go code, another actor of this package, or an address; nil for an owner with a name
	owner string // the name in the message
	id    uint64 // of the request
}

// senderAddress is the PID of an actor. (The two strings are apart from key, of which there is one
// for each request: most are made by claims.)
type senderAddress struct{ host, id string }

func requestKeyOf(from ask.Recipient, owner string, id uint64) requestKey {
	sender, actor := from.(host.Sender)
	switch {
	case owner != "" && !isInternal(from):
		return requestKey{owner: owner, id: id}
	case actor:
		return requestKey{from: senderAddress{sender.PID.Address, sender.PID.Id}, id: id}
	}
	return requestKey{from: from, id: id}
}

// isInternal tells senders that belong to this package: they may be told apart by what they
// are.
func isInternal(from ask.Recipient) bool {
	_, is := from.(*acquisition)
	return is || isLockActor(from)
}

// isLockActor tells an actor of this package, which asks on behalf of owners: their requests
// have been counted.
func isLockActor(from ask.Recipient) bool {
	ref, is := from.(*host.Ref)
	if is {
		_, is = ref.Actor().(interface{ lockActor() })
	}
	return is
}

// lockActor marks the actors of this package that give locks.
func (d *requestTable) lockActor() {}

// waitExpired is what a desk's actor tells itself when a request's wait is over.
type waitExpired struct{ id requests.ID }

// Acquire implements messages.LockHandler.
func (d *requestTable) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	if r := d.accept(from, msg, reply); r != nil {
		kind, _ := d.kindOf(from, msg) // open has refused any other
		d.handler.acquire(r.id, kind, msg)
	}
}

// Cancel implements messages.LockHandler.
func (d *requestTable) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := d.lookup(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		d.handler.cancel(r.id, requests.Cancelled)
	}
}

// Release implements messages.LockHandler.
func (d *requestTable) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	if r := d.acceptRelease(from, msg, reply); r != nil {
		d.handler.release(r.id)
	}
}

// onWaitExpired is for a request whose wait is over, unless it was granted meanwhile.
func (d *requestTable) onWaitExpired(id requests.ID) {
	if r := d.requests.At(id); r != nil && !r.granted {
		d.detail = fmt.Sprintf("after %v", r.waitLimit.duration)
		d.handler.cancel(id, requests.TimedOut)
	}
}

// accept takes a request in. If it is not acceptable, it is refused and open gives nil.
func (d *requestTable) accept(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) *request {
	d.used = true
	k := requestKeyOf(from, msg.GetOwner(), msg.GetRequestId())
	if why, problem := d.rejectReason(from, msg, k); why != 0 {
		if from == nil { // nobody will hear of it
			d.manager.log.Warn("acquire is refused", "path", d.path, "owner", msg.GetOwner(), "why", problem)
		}
		reply.Refuse(d.refusal(msg.GetRequestId(), why, problem))
		return nil
	}
	d.lastNumber++
	r := d.newRequest()
	*r = request{key: k, anonymous: msg.Owner == "", fromLockActor: isLockActor(from), try: msg.Try, reply: reply}
	if d.requests == nil {
		d.requests = &requests.Table[request]{}
	}
	r.id = d.requests.Add(uint32(d.lastNumber), r)
	d.addID(k, r.id)
	d.addToSender(from, r)
	if r.try && !r.fromLockActor && d.manager.zk.isLost() {
		d.refuseTry(r) // unless it is decided without ZooKeeper
	}
	if msg.WaitNanos > 0 {
		id, self := r.id, d.self
		wait := time.Duration(msg.WaitNanos)
		r.waitLimit = &waitLimit{wait, time.AfterFunc(wait, func() { self.Tell(waitExpired{id}) })}
	}
	return r
}

func (d *requestTable) rejectReason(from ask.Recipient, msg *messages.Acquire, k requestKey) (messages.Reason, string) {
	open := d.idOf(k) != 0
	_, actor := host.IdentityOf(from)
	_, wrongKind := d.kindOf(from, msg)
	switch {
	case msg == nil:
		return messages.Reason_INVALID, "the message is nil"
	case from == nil:
		return messages.Reason_INVALID, "the message has no sender that could be granted the lock: send it with Request"
	case msg.Owner == "" && !isInternal(from) && !actor:
		return messages.Reason_INVALID, "owner is empty, and the sender is a future (or has the id of one, future$ and a number), or no actor, which could never release the lock: " +
			"name an owner, or send Acquire with Request from an actor, which hears Granted as a message"
	case open:
		return messages.Reason_INVALID, fmt.Sprintf("request_id %d is used by an open request of the same owner", msg.RequestId)
	case msg.WaitNanos < 0:
		return messages.Reason_INVALID, fmt.Sprintf("wait_nanos %d is negative: 0 waits without limit", msg.WaitNanos)
	case wrongKind != nil:
		return messages.Reason_INVALID, wrongKind.Error()
	case msg.Permits > 0 && d.recipe.maxPermits == 0:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s has no permits; leave Permits out", msg.Permits, d.recipe.name)
	case msg.Permits > d.recipe.maxPermits:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s gives %d at most", msg.Permits, d.recipe.name, d.recipe.maxPermits)
	case isLockActor(from):
		return 0, ""
	}
	return d.overLimit(msg)
}

// kindOf is what an Acquire wants. The senders of this package say the kind itself.
func (d *requestTable) kindOf(from ask.Recipient, msg *messages.Acquire) (queue.Kind, error) {
	if isInternal(from) {
		return queue.Kind(msg.GetKind()), nil
	}
	return d.recipe.kindOf(msg.GetKind())
}

// overLimit tells which limit the message is over. If none, it is counted.
func (d *requestTable) overLimit(msg *messages.Acquire) (messages.Reason, string) {
	switch limits := &d.manager.limits; {
	case limits.perLock > 0 && d.requests.Len() >= limits.perLock:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open for this lock, the most that MaxRequestsPerLock allows", limits.perLock)
	case limits.data > 0 && len(msg.Data) > limits.data:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d bytes of node data, MaxNodeData allows %d", len(msg.Data), limits.data)
	case !d.manager.countRequest():
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that MaxRequests allows", limits.total)
	}
	return 0, ""
}

// lookup is the open request of an owner, or nil.
func (d *requestTable) lookup(from ask.Recipient, owner string, id uint64) *request {
	if w, ok := from.(withdrawal); ok {
		if r := d.requests.At(w.id); r != nil && !(w.waits && r.granted) {
			return r
		}
		return nil
	}
	return d.requests.At(d.idOf(requestKeyOf(from, owner, id)))
}

// idOf is the id of an open request, or 0.
func (d *requestTable) idOf(k requestKey) requests.ID {
	if c, ok := k.from.(*acquisition); ok {
		return c.id
	}
	return d.ids[k]
}

func (d *requestTable) addID(k requestKey, id requests.ID) {
	if c, ok := k.from.(*acquisition); ok {
		c.id = id
		return
	}
	if d.ids == nil {
		d.ids = map[requestKey]requests.ID{}
	}
	d.ids[k] = id
}

func (d *requestTable) removeID(k requestKey) {
	if c, ok := k.from.(*acquisition); ok {
		c.id = 0
	} else {
		delete(d.ids, k)
	}
}

// acceptRelease takes a Release in: it gives the request that ends, which is to be answered
// by released or refuse. If nothing is held, that is answered and letGo gives nil.
func (d *requestTable) acceptRelease(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) *request {
	r := d.lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || !r.granted || r.released {
		reply.Refuse(d.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return nil
	}
	r.release, r.released = reply, true
	return r
}

// remove forgets a request. It may be used again for another, but not before the next
// message.
func (d *requestTable) remove(r *request) {
	r.stopWaiting()
	d.removeFromSender(r)
	d.requests.Remove(r.id)
	d.removeID(r.key)
	if !r.fromLockActor {
		d.manager.requests.Add(-1)
	}
	if len(d.reusable) < maxReusable {
		d.reusable = append(d.reusable, r)
	}
}

const maxReusable = 64

func (d *requestTable) newRequest() *request {
	n := len(d.reusable)
	if n == 0 {
		return new(request)
	}
	r := d.reusable[n-1]
	d.reusable = d.reusable[:n-1]
	return r
}

func (r *request) markGranted() {
	r.granted = true
	r.stopWaiting()
}

func (r *request) stopWaiting() {
	if r.waitLimit != nil {
		r.waitLimit.timer.Stop()
	}
}

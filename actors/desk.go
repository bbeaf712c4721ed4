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

// desk is where an actor deals with owners: it keeps who asked for what, and answers.
// Every actor that gives locks has one.
type desk struct {
	*resident
	decider  decider
	requests *requests.Table[request] // nil while there are none for long, as ids
	ids      map[key]requests.ID      // but those of claims, which remember theirs
	senders  map[host.Identity]*sender
	spare    []*request // dropped, for re-use
	last     uint64     // number of a request
	detail   string     // more about the event in hand, for those who are answered
}

// decider is the actor of a desk, where it decides on what owners say.
type decider interface {
	acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire)
	cancel(id requests.ID, why requests.Reason)
	release(id requests.ID)
}

func newDesk(r *resident, decider decider) desk {
	return desk{resident: r, decider: decider}
}

// request is an Acquire as the desk remembers it.
type request struct {
	id        requests.ID
	key       key
	limit     *limit // nil if it waits for ever
	anonymous bool
	front     bool // see front
	try       bool
	granted   bool
	released  bool
	lost      bool
	wanted    bool            // it was told so
	instead   messages.Reason // of a withdrawal by the desk itself, rather than CANCELLED
	source    *source         // nil unless an actor, or a future, has sent it
	reply     ask.Reply[*messages.Granted]
	release   ask.Reply[*messages.Released] // once it was released
}

// limit is how long a request waits.
type limit struct {
	wait  time.Duration
	timer *time.Timer
}

// key is how owners name their requests: by who they are and a number of their own.
type key struct {
	from  any    // the claim of Go code, another actor of this package, or an address; nil for an owner with a name
	owner string // the name in the message
	id    uint64 // of the request
}

// address is the PID of an actor. (The two strings are apart from key, of which there is one
// for each request: most are made by claims.)
type address struct{ host, id string }

func keyOf(from ask.Recipient, owner string, id uint64) key {
	sender, actor := from.(host.Sender)
	switch {
	case owner != "" && !own(from):
		return key{owner: owner, id: id}
	case actor:
		return key{from: address{sender.PID.Address, sender.PID.Id}, id: id}
	}
	return key{from: from, id: id}
}

// own tells senders that belong to this package: they may be told apart by what they
// are.
func own(from ask.Recipient) bool {
	_, is := from.(*claim)
	return is || front(from)
}

// front tells an actor of this package, which asks on behalf of owners: their requests
// have been counted.
func front(from ask.Recipient) bool {
	ref, is := from.(*host.Ref)
	if is {
		_, is = ref.Actor().(interface{ atDesk() })
	}
	return is
}

// atDesk marks the actors of this package that give locks.
func (d *desk) atDesk() {}

// expired is what a desk's actor tells itself when a request's wait is over.
type expired struct{ id requests.ID }

// Acquire implements messages.LockHandler.
func (d *desk) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	if r := d.open(from, msg, reply); r != nil {
		kind, _ := d.kindOf(from, msg) // open has refused any other
		d.decider.acquire(r.id, kind, msg)
	}
}

// Cancel implements messages.LockHandler.
func (d *desk) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if r := d.find(from, msg.GetOwner(), msg.GetRequestId()); r != nil {
		d.decider.cancel(r.id, requests.Cancelled)
	}
}

// Release implements messages.LockHandler.
func (d *desk) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	if r := d.letGo(from, msg, reply); r != nil {
		d.decider.release(r.id)
	}
}

// expire is for a request whose wait is over, unless it was granted meanwhile.
func (d *desk) expire(id requests.ID) {
	if r := d.requests.At(id); r != nil && !r.granted {
		d.detail = fmt.Sprintf("after %v", r.limit.wait)
		d.decider.cancel(id, requests.TimedOut)
	}
}

// open takes a request in. If it is not acceptable, it is refused and open gives nil.
func (d *desk) open(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) *request {
	d.used = true
	k := keyOf(from, msg.GetOwner(), msg.GetRequestId())
	if why, problem := d.problem(from, msg, k); why != 0 {
		if from == nil { // nobody will hear of it
			d.manager.log.Warn("acquire is refused", "path", d.path, "owner", msg.GetOwner(), "why", problem)
		}
		reply.Refuse(d.refusal(msg.GetRequestId(), why, problem))
		return nil
	}
	d.last++
	r := d.newRequest()
	*r = request{key: k, anonymous: msg.Owner == "", front: front(from), try: msg.Try, reply: reply}
	if d.requests == nil {
		d.requests = &requests.Table[request]{}
	}
	r.id = d.requests.Add(uint32(d.last), r)
	d.remember(k, r.id)
	d.trace(from, r)
	if r.try && !r.front && d.manager.zk.isLost() {
		d.refuseTry(r) // unless it is decided without ZooKeeper
	}
	if msg.WaitNanos > 0 {
		id, self := r.id, d.self
		wait := time.Duration(msg.WaitNanos)
		r.limit = &limit{wait, time.AfterFunc(wait, func() { self.Tell(expired{id}) })}
	}
	return r
}

func (d *desk) problem(from ask.Recipient, msg *messages.Acquire, k key) (messages.Reason, string) {
	open := d.idOf(k) != 0
	_, actor := host.IdentityOf(from)
	_, wrongKind := d.kindOf(from, msg)
	switch {
	case msg == nil:
		return messages.Reason_INVALID, "the message is nil"
	case from == nil:
		return messages.Reason_INVALID, "the message has no sender that could be granted the lock: send it with Request"
	case msg.Owner == "" && !own(from) && !actor:
		return messages.Reason_INVALID, "owner is empty, and the sender is a future (or has the id of one, future$ and a number), or no actor, which could never release the lock: " +
			"name an owner, or send Acquire with Request from an actor, which hears Granted as a message"
	case open:
		return messages.Reason_INVALID, fmt.Sprintf("request_id %d is used by an open request of the same owner", msg.RequestId)
	case msg.WaitNanos < 0:
		return messages.Reason_INVALID, fmt.Sprintf("wait_nanos %d is negative: 0 waits without limit", msg.WaitNanos)
	case wrongKind != nil:
		return messages.Reason_INVALID, wrongKind.Error()
	case msg.Permits > 0 && d.recipe.most == 0:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s has no permits; leave Permits out", msg.Permits, d.recipe.name)
	case msg.Permits > d.recipe.most:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s gives %d at most", msg.Permits, d.recipe.name, d.recipe.most)
	case front(from):
		return 0, ""
	}
	return d.excess(msg)
}

// kindOf is what an Acquire wants. The senders of this package say the kind itself.
func (d *desk) kindOf(from ask.Recipient, msg *messages.Acquire) (queue.Kind, error) {
	if own(from) {
		return queue.Kind(msg.GetKind()), nil
	}
	return d.recipe.kindOf(msg.GetKind())
}

// excess tells which limit the message is over. If none, it is counted.
func (d *desk) excess(msg *messages.Acquire) (messages.Reason, string) {
	switch limits := &d.manager.limits; {
	case limits.perLock > 0 && d.requests.Len() >= limits.perLock:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open for this lock, the most that MaxRequestsPerLock allows", limits.perLock)
	case limits.data > 0 && len(msg.Data) > limits.data:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d bytes of node data, MaxNodeData allows %d", len(msg.Data), limits.data)
	case !d.manager.admit():
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that MaxRequests allows", limits.total)
	}
	return 0, ""
}

// find is the open request of an owner, or nil.
func (d *desk) find(from ask.Recipient, owner string, id uint64) *request {
	if w, ok := from.(withdrawal); ok {
		if r := d.requests.At(w.id); r != nil && !(w.waits && r.granted) {
			return r
		}
		return nil
	}
	return d.requests.At(d.idOf(keyOf(from, owner, id)))
}

// idOf is the id of an open request, or 0.
func (d *desk) idOf(k key) requests.ID {
	if c, ok := k.from.(*claim); ok {
		return c.id
	}
	return d.ids[k]
}

func (d *desk) remember(k key, id requests.ID) {
	if c, ok := k.from.(*claim); ok {
		c.id = id
		return
	}
	if d.ids == nil {
		d.ids = map[key]requests.ID{}
	}
	d.ids[k] = id
}

func (d *desk) forget(k key) {
	if c, ok := k.from.(*claim); ok {
		c.id = 0
	} else {
		delete(d.ids, k)
	}
}

// letGo takes a Release in: it gives the request that ends, which is to be answered
// by released or refuse. If nothing is held, that is answered and letGo gives nil.
func (d *desk) letGo(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) *request {
	r := d.find(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || !r.granted || r.released {
		reply.Refuse(d.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return nil
	}
	r.release, r.released = reply, true
	return r
}

// drop forgets a request. It may be used again for another, but not before the next
// message.
func (d *desk) drop(r *request) {
	r.stopWaiting()
	d.untrace(r)
	d.requests.Remove(r.id)
	d.forget(r.key)
	if !r.front {
		d.manager.requests.Add(-1)
	}
	if len(d.spare) < maxSpare {
		d.spare = append(d.spare, r)
	}
}

const maxSpare = 64

func (d *desk) newRequest() *request {
	n := len(d.spare)
	if n == 0 {
		return new(request)
	}
	r := d.spare[n-1]
	d.spare = d.spare[:n-1]
	return r
}

func (r *request) hold() {
	r.granted = true
	r.stopWaiting()
}

func (r *request) stopWaiting() {
	if r.limit != nil {
		r.limit.timer.Stop()
	}
}

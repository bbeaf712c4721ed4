package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// lock is the actor of one lock in this process. It turns messages into events for
// its queue.State, and performs the effects by telling the bridge and the owners.
type lock struct {
	manager *manager
	self    *host.Ref
	path    string
	bridge  messages.BridgeRef

	state    *queue.State
	requests map[queue.ID]*request
	ids      map[key]queue.ID
	spare    []*request // dropped, for re-use
	last     queue.ID
	epoch    uint64
	session  int64
	detail   string // what the bridge says of the event in hand

	pinned  atomic.Bool // its PID is known outside: it does not retire
	ticks   *time.Timer
	used    bool          // since the last tick
	quiet   time.Duration // how long nobody has wanted anything
	retired bool
	failed  bool
}

// request is an Acquire as the lock remembers it.
type request struct {
	id        queue.ID
	key       key
	requestID uint64 // its owner's own number
	anonymous bool
	wait      time.Duration
	deadline  *time.Timer
	granted   bool
	released  bool
	lost      bool
	reply     ask.Reply[*messages.Granted]
	release   ask.Reply[*messages.Released] // once it was released
}

// key is how owners name their requests: by who they are and a number of their own.
type key struct {
	from          ask.Recipient // of Go code: its claim
	owner         string        // as named in the message
	address, name string        // of an actor that names no owner
	id            uint64
}

func keyOf(from ask.Recipient, owner string, id uint64) key {
	sender, actor := from.(host.Sender)
	_, code := from.(*claim)
	switch {
	case owner != "" && !code:
		return key{owner: owner, id: id}
	case actor:
		return key{address: sender.PID.Address, name: sender.PID.Id, id: id}
	}
	return key{from: from, id: id}
}

// Messages that a lock sends to itself.
type (
	expired struct{ id queue.ID } // a request's wait is over
	tick    struct{}              // a moment has passed
)

// Receive implements host.Actor.
func (l *lock) Receive(from ask.Recipient, msg any) {
	if l.retired {
		l.Refuse(from, msg)
		return
	}
	switch msg := msg.(type) {
	case expired:
		l.expire(msg.id)
	case tick:
		l.tick()
	default:
		if !messages.DispatchLock(l, from, msg, from) && !messages.DispatchBridgeClient(l, from, msg, from) {
			l.manager.log.Warn("lock got a message that it does not know", "path", l.path, "message", fmt.Sprintf("%T", msg))
		}
	}
}

// ---- said by owners

// Acquire implements messages.LockHandler.
func (l *lock) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	l.used = true
	k := keyOf(from, msg.GetOwner(), msg.GetRequestId())
	if why, problem := l.problem(from, msg, k); why != 0 {
		if from == nil { // nobody will hear of it
			l.manager.log.Warn("acquire is refused", "path", l.path, "owner", msg.GetOwner(), "why", problem)
		}
		reply.Refuse(l.refusal(msg.GetRequestId(), why, problem))
		return
	}
	l.last++
	r := l.newRequest()
	*r = request{id: l.last, key: k, requestID: msg.RequestId, anonymous: msg.Owner == "", reply: reply}
	l.requests[r.id], l.ids[k] = r, r.id
	if msg.WaitNanos > 0 {
		id, self := r.id, l.self
		r.wait = time.Duration(msg.WaitNanos)
		r.deadline = time.AfterFunc(r.wait, func() { self.Tell(expired{id}) })
	}
	step(l, queue.Acquire{ID: r.id, Owner: msg.Owner, Try: msg.Try, Data: msg.Data})
}

func (l *lock) problem(from ask.Recipient, msg *messages.Acquire, k key) (messages.Reason, string) {
	_, open := l.ids[k]
	_, code := from.(*claim)
	_, actor := from.(host.Sender)
	switch limits := &l.manager.limits; {
	case msg == nil:
		return messages.Reason_INVALID, "the message is nil"
	case from == nil:
		return messages.Reason_INVALID, "the message has no sender that could be granted the lock: send it with Request"
	case msg.Owner == "" && !code && !actor:
		return messages.Reason_INVALID, "owner is empty, and the sender is no actor: nobody could release the lock"
	case open:
		return messages.Reason_INVALID, fmt.Sprintf("request_id %d is used by an open request of the same owner", msg.RequestId)
	case msg.WaitNanos < 0:
		return messages.Reason_INVALID, fmt.Sprintf("wait_nanos %d is negative: 0 waits without limit", msg.WaitNanos)
	case limits.perLock > 0 && len(l.requests) >= limits.perLock:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open for this lock, the most that MaxRequestsPerLock allows", limits.perLock)
	case limits.data > 0 && len(msg.Data) > limits.data:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d bytes of node data, MaxNodeData allows %d", len(msg.Data), limits.data)
	case !l.manager.admit():
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that MaxRequests allows", limits.total)
	}
	return 0, ""
}

// Cancel implements messages.LockHandler.
func (l *lock) Cancel(from ask.Recipient, msg *messages.Cancel) {
	if id, ok := l.ids[keyOf(from, msg.GetOwner(), msg.GetRequestId())]; ok {
		step(l, queue.Cancel{ID: id, Why: queue.Cancelled})
	}
}

// Release implements messages.LockHandler.
func (l *lock) Release(from ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	id, ok := l.ids[keyOf(from, msg.GetOwner(), msg.GetRequestId())]
	r := l.requests[id]
	if !ok || !r.granted || r.released {
		reply.Refuse(l.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return
	}
	r.release, r.released = reply, true
	step(l, queue.Release{ID: id})
}

func (l *lock) expire(id queue.ID) {
	if r := l.requests[id]; r != nil && !r.granted {
		l.detail = fmt.Sprintf("after %v", r.wait)
		step(l, queue.Cancel{ID: id, Why: queue.TimedOut})
	}
}

// ---- said by the bridge

// Created implements messages.BridgeClientHandler.
func (l *lock) Created(_ ask.Recipient, msg *messages.Created) {
	step(l, queue.Created{Epoch: msg.Epoch, Serial: msg.Id, Node: msg.Node, Czxid: msg.Czxid,
		Step: msg.Step, Others: int(msg.Others), Children: msg.Children, Directory: msg.DirectoryCzxid})
}

// Listed implements messages.BridgeClientHandler.
func (l *lock) Listed(_ ask.Recipient, msg *messages.Listed) {
	step(l, queue.Listed{Epoch: msg.Epoch, Serial: msg.Id, Children: msg.Children, Directory: msg.DirectoryCzxid})
}

// Watched implements messages.BridgeClientHandler.
func (l *lock) Watched(_ ask.Recipient, msg *messages.Watched) {
	step(l, queue.Watched{Epoch: msg.Epoch, Serial: msg.Id, Gone: msg.Gone})
}

// NodeReleased implements messages.BridgeClientHandler.
func (l *lock) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	step(l, queue.Deleted{Serial: msg.Id})
}

// Failed implements messages.BridgeClientHandler.
func (l *lock) Failed(_ ask.Recipient, msg *messages.Failed) {
	l.detail = msg.Detail
	step(l, queue.Failed{Epoch: msg.Epoch, Serial: msg.Id, Why: queue.Why(msg.Reason)})
}

// Wake implements messages.BridgeClientHandler.
func (l *lock) Wake(_ ask.Recipient, msg *messages.Wake) {
	step(l, queue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}

// SessionChanged implements messages.BridgeClientHandler.
func (l *lock) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	l.detail = msg.Detail
	switch msg.State {
	case messages.SessionState_CONNECTED:
		l.epoch, l.session = msg.Epoch, msg.SessionId
		step(l, queue.Session{Epoch: msg.Epoch, State: queue.Connected})
	case messages.SessionState_SUSPENDED:
		step(l, queue.Session{Epoch: msg.Epoch, State: queue.Suspended})
		for _, r := range l.requests {
			if r.granted && !r.released && !r.lost {
				messages.OwnerRef{To: r.reply.Recipient()}.Suspended(&messages.Suspended{RequestId: r.requestID})
			}
		}
	case messages.SessionState_LOST:
		step(l, queue.Session{Epoch: msg.Epoch, State: queue.Lost})
	case messages.SessionState_SHUT:
		step(l, queue.Close{Why: queue.Closed})
	}
}

// ---- performing

// step is for every event.
func step[E queue.Event](l *lock, e E) {
	for _, f := range queue.Step(l.state, e) {
		l.perform(f)
	}
	l.detail = ""
}

func (l *lock) perform(f queue.Effect) {
	switch f.Do {
	case queue.DoCreate:
		l.bridge.SendCreate(&messages.Create{Id: f.Serial, Epoch: l.epoch, Directory: l.path, Prefix: f.Node, Data: f.Data}, l.self)
	case queue.DoList:
		l.bridge.SendList(&messages.List{Id: f.Serial, Epoch: l.epoch, Directory: l.path}, l.self)
	case queue.DoWatch:
		l.bridge.SendWatch(&messages.Watch{Id: f.Serial, Epoch: l.epoch, Directory: l.path, Nodes: f.Nodes}, l.self)
	case queue.DoDelete:
		l.releaseNode(f.Serial, f.Node)
	case queue.DoGrant:
		r := l.requests[f.ID]
		r.granted = true
		r.stopWaiting()
		r.reply.Answer(&messages.Granted{RequestId: r.requestID, Path: l.path, Node: f.Node,
			Czxid: f.Czxid, Step: f.Step, SessionId: l.session, Epoch: l.epoch})
	case queue.DoRefuse:
		l.refuse(l.requests[f.ID], messages.Reason(f.Why))
	case queue.DoLose:
		l.lose(l.requests[f.ID], messages.Reason(f.Why))
	case queue.DoReleased:
		r := l.drop(l.requests[f.ID])
		r.release.Answer(&messages.Released{RequestId: r.requestID, StillHeld: uint32(f.StillHeld)})
	case queue.DoReport:
		l.manager.log.Warn("child of a lock's directory is no contender and is ignored", "path", l.path, "name", f.Node)
	}
}

func (l *lock) releaseNode(serial uint64, node string) {
	l.bridge.SendReleaseNode(&messages.ReleaseNode{Id: serial, Epoch: l.epoch, Directory: l.path, Node: node}, l.self)
}

// refuse answers whatever the request asked for last.
func (l *lock) refuse(r *request, why messages.Reason) {
	l.drop(r)
	refusal := l.refusal(r.requestID, why, l.detail)
	if r.released {
		r.release.Refuse(refusal)
		return
	}
	r.reply.Refuse(refusal)
}

func (l *lock) lose(r *request, why messages.Reason) {
	r.lost = true
	if r.anonymous {
		l.drop(r) // nobody could enter again by it
	}
	messages.OwnerRef{To: r.reply.Recipient()}.Lost(&messages.Lost{RequestId: r.requestID, Reason: why, Detail: join(l.path, l.detail)})
}

// drop forgets a request. It may be used again for another, but not before the next
// message.
func (l *lock) drop(r *request) *request {
	r.stopWaiting()
	delete(l.requests, r.id)
	delete(l.ids, r.key)
	l.manager.requests.Add(-1)
	if len(l.spare) < maxSpare {
		l.spare = append(l.spare, r)
	}
	return r
}

const maxSpare = 16

func (l *lock) newRequest() *request {
	n := len(l.spare)
	if n == 0 {
		return new(request)
	}
	r := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return r
}

func (r *request) stopWaiting() {
	if r.deadline != nil {
		r.deadline.Stop()
	}
}

func (l *lock) refusal(requestID uint64, why messages.Reason, detail string) *messages.Refused {
	return &messages.Refused{RequestId: requestID, Reason: why, Detail: join(l.path, detail)}
}

func join(path, detail string) string {
	if detail == "" {
		return path
	}
	return path + ": " + detail
}

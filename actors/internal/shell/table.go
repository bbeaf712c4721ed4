package shell

import (
	"fmt"
	"iter"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// requestTable holds the open requests of one actor.
type requestTable struct {
	requests   *requests.Table[Request]   // nil before the first request, and after a time without any
	ids        map[requestKey]requests.ID // of all requests but Acquisitions, which keep theirs
	reusable   []*Request                 // removed requests
	lastNumber uint32
}

// maxReusable bounds requestTable.reusable.
const maxReusable = 64

// new returns a request with an ID, in the table.
func (t *requestTable) new() *Request {
	r := new(Request)
	if n := len(t.reusable); n > 0 {
		r, t.reusable = t.reusable[n-1], t.reusable[:n-1]
	}
	if t.requests == nil {
		t.requests = &requests.Table[Request]{}
	}
	t.lastNumber++
	*r = Request{ID: t.requests.Add(t.lastNumber, r)}
	return r
}

// addID makes the request one that find finds.
func (t *requestTable) addID(r *Request) {
	if r.Acquisition != nil {
		*r.Acquisition.RequestID() = r.ID
		return
	}
	if t.ids == nil {
		t.ids = map[requestKey]requests.ID{}
	}
	t.ids[r.key] = r.ID
}

// remove takes a request out. Another request may use its memory, but not before the next
// message.
func (t *requestTable) remove(r *Request) {
	t.requests.Remove(r.ID)
	if r.Acquisition != nil {
		*r.Acquisition.RequestID() = 0
	} else {
		delete(t.ids, r.key)
	}
	if len(t.reusable) < maxReusable {
		t.reusable = append(t.reusable, r)
	}
}

// find returns the open request of a sender, or nil.
func (t *requestTable) find(from ask.Recipient, owner string, id uint64) *Request {
	if a, ok := from.(Acquisition); ok {
		return t.requests.At(*a.RequestID())
	}
	return t.requests.At(t.ids[requestKeyOf(from, owner, id)])
}

// releaseMemory is called at a tick before which the actor was not used.
func (t *requestTable) releaseMemory() {
	t.reusable = nil
	if t.requests.Len() == 0 {
		t.requests, t.ids = nil, nil
	}
}

// Request returns the open request by its ID, or nil.
func (s *Shell) Request(id requests.ID) *Request { return s.table.requests.At(id) }

// Requests returns the open requests.
func (s *Shell) Requests() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for _, r := range s.table.requests.All() {
			if !yield(r) {
				return
			}
		}
	}
}

// Lookup returns the open request of an owner, or nil.
func (s *Shell) Lookup(from ask.Recipient, owner string, id uint64) *Request {
	if w, ok := from.(withdrawal); ok {
		if r := s.table.requests.At(w.id); r != nil && !(w.onlyWaiting && r.Granted) {
			return r
		}
		return nil
	}
	return s.table.find(from, owner, id)
}

// Accept takes a request in. It refuses an unacceptable request, and returns nil then.
func (s *Shell) Accept(from ask.Recipient, msg *messages.Acquire) *Request {
	s.used = true
	if reason, problem := s.rejectReason(from, msg); reason != 0 {
		if from == nil { // no answer is possible
			s.Manager.Log.Warn("acquire is refused", "path", s.Path, "owner", msg.GetOwner(), "why", problem)
		}
		tell(from, s.refusal(msg.GetRequestId(), reason, problem))
		return nil
	}
	r := s.table.new()
	r.key, r.owner, r.try = requestKeyOf(from, msg.Owner, msg.RequestId), from, msg.Try
	r.Named, r.FromLockActor = msg.Owner != "", isLockActor(from)
	r.Acquisition, _ = from.(Acquisition)
	s.table.addID(r)
	s.addToSender(from, r)
	if r.try && !r.FromLockActor && s.Manager.Bridge.isLost() {
		s.refuseTry(r) // unless the request is decided without ZooKeeper
	}
	if msg.WaitNanos > 0 {
		id, self, wait := r.ID, s.Self, time.Duration(msg.WaitNanos)
		r.waitLimit = &waitLimit{wait, time.AfterFunc(wait, func() { self.Tell(waitExpired{id}) })}
	}
	return r
}

// Remove takes a request out that is answered, or that needs no answer.
func (s *Shell) Remove(r *Request) {
	r.stopWaiting()
	s.removeFromSender(r)
	s.table.remove(r)
	if !r.FromLockActor {
		s.Manager.openRequests.Add(-1)
	}
}

// rejectReason returns why a message is not acceptable, or 0. It counts an acceptable request.
func (s *Shell) rejectReason(from ask.Recipient, msg *messages.Acquire) (messages.Reason, string) {
	open := s.table.find(from, msg.GetOwner(), msg.GetRequestId()) != nil
	_, isActor := host.IdentityOf(from)
	_, wrongKind := s.kindOf(from, msg)
	switch {
	case msg == nil:
		return messages.Reason_INVALID, "the message is nil"
	case from == nil:
		return messages.Reason_INVALID, "the message has no sender that could be granted the lock: send it with Request"
	case msg.Owner == "" && !isInternal(from) && !isActor:
		return messages.Reason_INVALID, "owner is empty, and the sender is a future (or has the id of one, future$ and a number), or no actor, which could never release the lock: " +
			"name an owner, or send Acquire with Request from an actor, which hears Granted as a message"
	case open:
		return messages.Reason_INVALID, fmt.Sprintf("request_id %d is used by an open request of the same owner", msg.RequestId)
	case msg.WaitNanos < 0:
		return messages.Reason_INVALID, fmt.Sprintf("wait_nanos %d is negative: 0 waits without limit", msg.WaitNanos)
	case wrongKind != nil:
		return messages.Reason_INVALID, wrongKind.Error()
	case msg.Permits > 0 && s.Recipe.MaxPermits == 0:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s has no permits; leave Permits out", msg.Permits, s.Recipe.Name)
	case msg.Permits > s.Recipe.MaxPermits:
		return messages.Reason_INVALID, fmt.Sprintf("%d permits: a %s gives %d at most", msg.Permits, s.Recipe.Name, s.Recipe.MaxPermits)
	case isLockActor(from):
		return 0, ""
	}
	return s.overLimit(msg)
}

// kindOf returns the kind that an Acquire wants. Senders of this library name the kind itself.
func (s *Shell) kindOf(from ask.Recipient, msg *messages.Acquire) (queue.Kind, error) {
	if isInternal(from) {
		return queue.Kind(msg.GetKind()), nil
	}
	return s.Recipe.kindOf(msg.GetKind())
}

// overLimit returns LIMIT_EXCEEDED if the message is over a limit. Otherwise it counts the
// request and returns 0.
func (s *Shell) overLimit(msg *messages.Acquire) (messages.Reason, string) {
	switch limits := &s.Manager.limits; {
	case limits.PerLock > 0 && s.table.requests.Len() >= limits.PerLock:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open for this lock, the most that MaxRequestsPerLock allows", limits.PerLock)
	case limits.NodeData > 0 && len(msg.Data) > limits.NodeData:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d bytes of node data, MaxNodeData allows %d", len(msg.Data), limits.NodeData)
	case !s.Manager.countRequest():
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that MaxRequests allows", limits.Total)
	}
	return 0, ""
}

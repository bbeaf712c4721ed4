package lock

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
	lastNumber uint32
	// reusable has removed requests. Those that are used again spare an acquire 80 bytes, which is a
	// tenth of the time of one by a local queue.
	reusable requests.Spare[Request]
}

// new returns a request with an ID, in the table.
func (t *requestTable) new() *Request {
	r := t.reusable.Take()
	if t.requests == nil {
		t.requests = &requests.Table[Request]{}
	}
	t.lastNumber++
	*r = Request{ID: t.requests.Add(t.lastNumber, r)}
	return r
}

// addID makes the request one that find finds.
func (t *requestTable) addID(r *Request) {
	if a := r.Acquisition(); a != nil {
		*a.RequestID() = r.ID
		return
	}
	if t.ids == nil {
		t.ids = map[requestKey]requests.ID{}
	}
	t.ids[*r.key] = r.ID
}

// remove takes a request out. Another request may use its memory, but not before the next
// message.
func (t *requestTable) remove(r *Request) {
	t.requests.Remove(r.ID)
	if a := r.Acquisition(); a != nil {
		*a.RequestID() = 0
	} else {
		delete(t.ids, *r.key)
	}
	t.reusable.Put(r)
}

// find returns the open request of a sender, or nil.
func (t *requestTable) find(from sender, owner string, id uint64) *Request {
	if from.acquisition != nil {
		return t.requests.At(*from.acquisition.RequestID())
	}
	return t.requests.At(t.ids[from.key(owner, id)])
}

// releaseMemory is called at a tick before which the actor was not used.
func (t *requestTable) releaseMemory() {
	t.reusable = requests.Spare[Request]{}
	if t.requests.Len() == 0 {
		t.requests, t.ids = nil, nil
	}
}

// Request returns the open request by its ID, or nil.
func (l *Actor) Request(id requests.ID) *Request { return l.table.requests.At(id) }

// Requests returns the open requests.
func (l *Actor) Requests() iter.Seq2[requests.ID, *Request] { return l.table.requests.All() }

// Lookup returns the open request of an owner, or nil.
func (l *Actor) Lookup(from ask.Recipient, owner string, id uint64) *Request {
	return l.table.find(senderOf(from), owner, id)
}

// Accept takes a request in. It refuses an unacceptable request, and returns nil then.
func (l *Actor) Accept(from ask.Recipient, msg *messages.Acquire) *Request {
	l.used = true
	by := senderOf(from)
	if !by.isLockActor {
		l.Tally.Requested.Add(1)
	}
	kind, reason, problem := l.check(by, msg)
	if reason != 0 {
		if from == nil { // no answer is possible
			l.Manager.Log.Warn("acquire is refused", "path", l.Path, "owner", msg.GetOwner(), "why", problem,
				"do", "send it with Request, so that the sender gets the answer")
		}
		if !by.isLockActor {
			l.Tally.Refused[reason].Add(1)
		}
		tell(from, l.refusal(msg.GetRequestId(), reason, problem))
		return nil
	}
	r := l.table.new()
	r.owner, r.Try, r.Kind, r.FromLockActor = from, msg.Try, kind, by.isLockActor
	r.since = l.now()
	if by.acquisition == nil {
		key := by.key(msg.Owner, msg.RequestId)
		r.key = &key
	}
	l.table.addID(r)
	l.addToSender(from, r)
	l.beginMonitor(r)
	if lost := l.lost[msg.Owner]; len(lost) > 0 {
		l.Detail = fmt.Sprintf("owner %q has lost the lock and not released it", msg.Owner)
		l.RefuseRequest(r.ID, requests.Reason(lost[0].lost))
		return nil
	}
	if r.Try && !r.FromLockActor && isLost(l.Manager.Session.Session().State) {
		l.Self.Tell(tryDisconnected{r.ID}) // ends it unless it is decided without ZooKeeper
	}
	if msg.FailOnSessionLoss {
		l.failWithSession(r)
	}
	l.limit(r, time.Duration(msg.WaitNanos), time.Duration(msg.HoldNanos))
	return r
}

// Remove takes a request out that is answered, or that needs no answer. Its end must be counted before: Drain may
// return at once.
func (l *Actor) Remove(r *Request) {
	r.stopTimer()
	l.removeFromSender(r)
	l.noteGrantEnd(r)
	l.table.remove(r)
	if !r.FromLockActor {
		l.Manager.UncountRequest()
	}
}

// maxOwner bounds the bytes of an owner's name, which many errors and lines of the log have.
const maxOwner = 1 << 10

// check returns the kind that an acceptable message wants, and counts the request; or why the
// message is not acceptable.
func (l *Actor) check(from sender, msg *messages.Acquire) (kind queue.Kind, reason messages.Reason, problem string) {
	const invalid = messages.Reason_INVALID
	switch {
	case msg == nil:
		return 0, invalid, "the message is nil"
	case from.Recipient == nil:
		return 0, invalid, "the message has no sender that could be granted the lock: send it with Request"
	case msg.Owner == "" && !from.isInternal() && !isActor(from):
		return 0, invalid, "owner is empty, and the sender is a future (or has the id of one, future$ and a number), or no actor, which could never release the lock: " +
			"name an owner, or send Acquire with Request from an actor, which hears Granted as a message"
	case len(msg.Owner) > maxOwner:
		return 0, invalid, fmt.Sprintf("owner has a name of %d bytes: it must have %d at most", len(msg.Owner), maxOwner)
	case l.table.find(from, msg.Owner, msg.RequestId) != nil:
		return 0, invalid, fmt.Sprintf("request_id %d is used by an open request of the same owner", msg.RequestId)
	case msg.WaitNanos < 0:
		return 0, invalid, fmt.Sprintf("wait_nanos %d is negative: 0 waits without limit", msg.WaitNanos)
	case msg.HoldNanos < 0:
		return 0, invalid, fmt.Sprintf("hold_nanos %d is negative: 0 holds without limit", msg.HoldNanos)
	}
	kind = queue.Kind(msg.Kind)
	if !from.isInternal() {
		var wrong error
		if kind, wrong = l.Recipe.KindOf(msg.Kind); wrong != nil {
			return 0, invalid, wrong.Error()
		}
	}
	switch {
	case msg.Permits > 0 && l.Recipe.MaxPermits == 0:
		return 0, invalid, fmt.Sprintf("%d permits: a %s has no permits; leave Permits out", msg.Permits, l.Recipe.Name)
	case msg.Permits > l.Recipe.MaxPermits:
		return 0, invalid, fmt.Sprintf("%d permits: a %s gives %d at most", msg.Permits, l.Recipe.Name, l.Recipe.MaxPermits)
	case !from.isLockActor:
		reason, problem = l.Manager.Admit(msg, l.table.requests.Len(), l.holds)
	}
	return kind, reason, problem
}

func isActor(from sender) bool {
	_, is := host.IdentityOf(from.Recipient)
	return is
}

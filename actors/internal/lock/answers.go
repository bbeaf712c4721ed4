package lock

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// tell sends an answer. Without a recipient it drops the answer.
func tell(to ask.Recipient, msg any) {
	if to != nil {
		to.Tell(msg)
	}
}

// TokenOf returns the token of a grant that has the message, with a step of its own: see Grant.
func TokenOf(granted *messages.Granted, step uint32) requests.Token {
	return requests.Token{Generation: granted.GetGeneration(), Czxid: granted.GetCzxid(), Step: step}
}

// Answer performs an effect for the owner of a request, unless it is a Grant: see Grant.
func (l *Actor) Answer(news *requests.Effect) {
	switch news.Kind {
	case requests.Refuse:
		l.RefuseRequest(news.ID, news.Reason)
	case requests.Lose:
		l.Lose(news.ID, news.Reason)
	case requests.ConfirmRelease:
		l.ConfirmRelease(news.ID, news.StillHeld)
	case requests.RequestRevoke:
		l.RequestRevoke(news.ID)
	case requests.NotifyContended:
		l.NotifyContended(news.ID)
	}
}

// RefuseRequest ends a request. It answers the Release if the owner has sent one, else the
// Acquire.
func (l *Actor) RefuseRequest(id requests.ID, why requests.Reason) {
	r := l.Request(id)
	if r.lost != 0 {
		return // it was told Lost, and is the Actor's: see awaitRelease
	}
	refusal := l.refusal(r.Number(), messages.Reason(why), l.Detail)
	if why == requests.TimedOut {
		if outage := l.Manager.Session.OutageText(); outage != "" {
			refusal.Disconnected, refusal.Detail = true, refusal.Detail+"; "+outage
		}
	}
	l.countRefusal(r, refusal.Reason)
	l.Remove(r)
	if r.Released {
		tell(r.releaser, refusal)
		return
	}
	if r.extras != nil && r.extras.awaitNode != nil {
		owner := r.owner // r may be another request by then
		r.extras.awaitNode(func() { owner.Tell(refusal) })
		return
	}
	r.Tell(refusal)
}

// tellIfSuspended tells a holder that it may lose what it holds, if there is no connection. It is
// called for all holders when the connection is lost, and for each one that is granted until it is
// back. Other locks' actors hear of the connection themselves.
func (l *Actor) tellIfSuspended(r *Request) {
	if l.suspended && r.Holds() && !r.FromLockActor {
		r.notify(&messages.Suspended{RequestId: r.Number()})
	}
}

// RequestRevoke tells a holder that it should release: another client asks for the lock, or most of
// its hold time is over. It does so once for a grant, though a grant may have several nodes.
func (l *Actor) RequestRevoke(id requests.ID) {
	if r := l.Request(id); !r.revokeSent {
		r.revokeSent = true
		r.notify(&messages.RevokeRequested{RequestId: r.Number()})
	}
}

// NotifyContended tells a holder that other contenders wait.
func (l *Actor) NotifyContended(id requests.ID) {
	r := l.Request(id)
	r.notify(&messages.Contended{RequestId: r.Number()})
}

// Holds reports whether the request holds the lock, and its release has not begun.
func (r *Request) Holds() bool { return r.Granted != nil && !r.Released && r.lost == 0 }

// EndAll ends all requests.
func (l *Actor) EndAll(why requests.Reason) {
	for _, r := range l.Requests() {
		if r.Holds() {
			l.Lose(r.ID, why)
		} else {
			l.RefuseRequest(r.ID, why)
		}
	}
}

// withdraw ends the request as Cancel does, by a message that the actor receives soon.
func (l *Actor) withdraw(r *Request) { l.Self.Tell(withdrawal{r.ID}) }

func (l *Actor) refusal(requestID uint64, reason messages.Reason, detail string) *messages.Refused {
	return &messages.Refused{RequestId: requestID, Reason: reason, Detail: JoinDetail(l.Path, detail)}
}

// JoinDetail returns the detail of an error with the path that it is about.
func JoinDetail(path, detail string) string {
	if detail == "" {
		return path
	}
	return path + ": " + detail
}

// NodeAwaiter is the Behavior of a recipe that knows when the node of a request is deleted, for a Cancel with
// await_node. The end of the actor ends the wait.
type NodeAwaiter interface {
	// AwaitNode is called for a request that is about to end. The function that it returns calls another
	// one, behind the end, once the node of the request is deleted or its session is lost.
	AwaitNode(id requests.ID) (await func(then func()))
}

// Cancel implements messages.LockHandler.
func (l lockHandler) Cancel(from ask.Recipient, msg *messages.Cancel) {
	r := l.Lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil {
		return
	}
	if b, is := l.behavior.(NodeAwaiter); is && msg.GetAwaitNode() {
		r.needExtras().awaitNode = b.AwaitNode(r.ID)
	}
	l.cancel(r, messages.Reason_CANCELLED)
}

// cancel withdraws a request.
func (l *Actor) cancel(r *Request, reason messages.Reason) {
	if r.lost == 0 {
		l.behavior.Cancel(r, reason)
		return
	}
	l.forgetLost(r)
	r.Tell(l.refusal(r.Number(), reason, ""))
}

// Release implements messages.LockHandler.
func (l lockHandler) Release(from ask.Recipient, msg *messages.Release, _ ask.Reply[*messages.Released]) {
	r := l.Lookup(from, msg.GetOwner(), msg.GetRequestId())
	if r == nil || r.Granted == nil || r.Released {
		tell(from, l.refusal(msg.GetRequestId(), messages.Reason_NOT_HELD, "released or lost before, or never granted to this owner"))
		return
	}
	if r.Holds() {
		l.holders--
	}
	r.Released, r.releaser = true, from
	if r.lost != 0 {
		l.forgetLost(r)
		tell(from, l.refusal(r.Number(), r.lost, ""))
		return
	}
	l.behavior.Release(r)
}

// ConfirmRelease ends a request whose release is done. stillHeld other requests of its owner
// hold the lock yet.
func (l *Actor) ConfirmRelease(id requests.ID, stillHeld int) {
	r := l.Request(id)
	l.countRelease(r)
	l.Remove(r)
	answer := plainReleased
	if r.Acquisition() == nil {
		answer = &messages.Released{RequestId: r.Number(), StillHeld: uint32(stillHeld)}
	}
	tell(r.releaser, answer)
}

// plainReleased is the answer to Acquisitions, which do not read it.
var plainReleased = &messages.Released{}

// The request of a lost grant stays open until its named owner has released it, except of a
// semaphore. Until then the owner's further requests are refused: a re-entry could turn into a new
// grant, unnoticed by the part of the program that relies on the lost one. The request of an owner
// elsewhere stays open in any case: see AwaitLossConfirmed. The recipe does not know a lost grant any
// more.

// tellLost tells the owner that its grant is lost.
func (l *Actor) tellLost(r *Request, why messages.Reason, detail string) {
	if r.Holds() {
		l.countEnd(r, &l.Tally.Lost[why], why)
	}
	r.lost = why
	r.notify(&messages.Lost{RequestId: r.Number(), Reason: why, Detail: JoinDetail(l.Path, detail)})
}

// awaitRelease keeps the request of a lost grant until its owner has released it. It removes the
// request of an owner of this process at once if the owner has no name or the lock is a semaphore:
// these have no re-entry to refuse.
func (l *Actor) awaitRelease(r *Request) {
	switch {
	case l.refusesReentry(r):
		if l.lost == nil {
			l.lost = map[string][]*Request{}
		}
		l.lost[r.OwnerName()] = append(l.lost[r.OwnerName()], r)
		l.noteGrantEnd(r)
		if !r.FromLockActor {
			l.Manager.NoteLost(l.Path, r.OwnerName(), r.lost)
		}
	case l.mustConfirmLoss(r):
		l.noteGrantEnd(r)
	default:
		l.Remove(r)
	}
}

// mustConfirmLoss reports whether the owner of a lost grant counts as holding until it has confirmed the loss. The
// multi-lock of a failed member answers for owners: it withdraws its attempts once they know.
func (l *Actor) mustConfirmLoss(r *Request) bool {
	return r.isElsewhere() || r.FromLockActor && l.failed
}

// refusesReentry reports whether the owner of a lost grant is refused until it has released it.
func (l *Actor) refusesReentry(r *Request) bool {
	return r.OwnerName() != "" && l.Recipe.MaxPermits == 0
}

// forgetLost removes the request of a lost grant that its owner has released.
func (l *Actor) forgetLost(r *Request) {
	if l.refusesReentry(r) {
		owner := r.OwnerName()
		if left := slices.DeleteFunc(l.lost[owner], func(o *Request) bool { return o == r }); len(left) > 0 {
			l.lost[owner] = left
		} else {
			delete(l.lost, owner)
		}
		if !r.FromLockActor {
			l.Manager.ForgetLost(l.Path, owner)
		}
	}
	var then []*lossWait
	if r.extras != nil {
		then = r.extras.lossWait
	}
	l.Remove(r)
	for _, d := range then {
		if d.owners--; d.owners == 0 {
			d.call()
		}
	}
}

// lossWait is a call that is due when no owner believes in its lost grant any more.
type lossWait struct {
	owners int // that may believe
	call   func()
}

// AwaitLossConfirmed is called behind the Lose of grants, of which nodes are left. If some of the
// owners are elsewhere, it returns true, and has f called when they believe in the grants no more.
// Otherwise it returns false.
func (l *Actor) AwaitLossConfirmed(lost []*Request, f func()) bool {
	unconfirmed := slices.DeleteFunc(slices.Clone(lost), func(r *Request) bool { return !l.mustConfirmLoss(r) })
	AwaitRelease(unconfirmed, f)
	return len(unconfirmed) > 0
}

// LostOf returns the requests of grants that the named owner has lost and not released, those of other
// locks' actors among them.
func (l *Actor) LostOf(owner string) []*Request { return l.lost[owner] }

// AwaitRelease has f called when the owners of lost grants have released all of them; never if there are
// none. Of several calls that wait for an owner the last one comes first: the end of a failed actor
// precedes what waits for it.
func AwaitRelease(lost []*Request, f func()) {
	d := &lossWait{owners: len(lost), call: f}
	for _, r := range lost {
		x := r.needExtras()
		x.lossWait = slices.Insert(x.lossWait, 0, d)
	}
}

// LostBy returns why a named owner has lost a grant that it has not released; 0 if there is none.
// Grants of other locks' actors do not count: see LostOf.
func (l *Actor) LostBy(owner string) messages.Reason { return l.Manager.LostBy(l.Path, owner) }

// NodesOf returns the full paths of all nodes of a grant.
func NodesOf(granted *messages.Granted) (all []string) {
	if len(granted.Parts) == 0 {
		return []string{NodeOf(granted)}
	}
	for _, part := range granted.Parts {
		all = append(all, NodeOf(part))
	}
	return all
}

// NodeOf returns the full path of the node of a grant, or of one that the token's transaction created.
func NodeOf(granted *messages.Granted) string { return zkpath.Join(granted.Path, granted.Node) }

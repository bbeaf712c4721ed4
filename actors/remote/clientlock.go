package remote

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// clientLock is the actor of a path in a process without ZooKeeper. It asks the lock server on
// behalf of the owners, whose limits of time it keeps itself.
type clientLock struct {
	lock.Actor
	session    *session
	spec       *messages.LockSpec
	problem    string // why the server cannot have such a lock; "" if it can
	epoch      uint64 // of the grants; 0 for none, and once their session is lost
	open       map[requests.ID]*openRequest
	byNumber   map[uint64]requests.ID // of the requests that the server has
	holdCounts map[hold]int           // grants of a named owner by one node
	awaited    awaitedEnds
}

// NewActor implements manager.Remote.
func (s *session) NewActor(e *manager.Entry) host.Actor {
	l := &clientLock{session: s, open: map[requests.ID]*openRequest{}, byNumber: map[uint64]requests.ID{}, holdCounts: map[hold]int{}}
	s.locks.Store(e.Manager)
	spec, err := recipes.SpecOf(e.Recipe)
	if l.problem = problemOfLock(e.Path, spec); err != nil {
		l.problem = err.Error()
	}
	l.spec = spec
	l.Init(e, l)
	return l
}

// ---- calls of the lock.Actor

// Acquire implements lock.Behavior.
func (l *clientLock) Acquire(r *lock.Request, msg *messages.Acquire) {
	if problem := cmp.Or(l.problem, problemOfText("owner", msg.Owner), problemOfData(msg.Data), problemOfPermits(l.Path, msg.Permits)); problem != "" {
		l.Detail = problem
		l.RefuseRequest(r.ID, requests.Invalid)
		return
	}
	o := &openRequest{acquire: &messages.Acquire{Owner: msg.Owner, Data: l.Manager.NodeData(msg.Data, msg.Owner), Try: msg.Try, Permits: msg.Permits,
		NotifyContended: msg.NotifyContended, Revocable: msg.Revocable}}
	if l.Recipe.KindNumbers != nil {
		o.acquire.Kind = uint32(l.Recipe.KindNumbers[r.Kind])
	}
	l.open[r.ID] = o
	l.send(r.ID, o)
}

// send sends a request if there is a session. Otherwise the request waits for one. It refuses the
// request of a multi-lock whose owner has lost a member and not released it.
func (l *clientLock) send(id requests.ID, o *openRequest) {
	for _, m := range l.spec.GetMembers() {
		if why := l.Manager.LostBy(m.Path, o.acquire.Owner); why != 0 {
			l.forget(id)
			l.Detail = fmt.Sprintf("owner %q has lost %s and not released it", o.acquire.Owner, m.Path)
			l.RefuseRequest(id, requests.Reason(why))
			return
		}
	}
	now := l.session.Session()
	if now.State != messages.SessionState_CONNECTED && now.State != messages.SessionState_SUSPENDED {
		return
	}
	o.epoch, o.number = now.Epoch, l.session.lastNumber.Add(1)
	if o.acquire.RequestId != 0 { // a stream of the last epoch may be sending it yet
		o.acquire = proto.CloneOf(o.acquire)
	}
	o.acquire.RequestId = o.number
	l.byNumber[o.number] = id
	l.tellServer(o, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{
		Acquire: &messages.AcquireLock{Path: l.Path, Lock: l.spec, Acquire: o.acquire}}})
}

func (l *clientLock) tellServer(o *openRequest, m *messages.ClientMessage) {
	l.session.send(o.epoch, o.number, l.Self, m)
}

// Cancel implements lock.Behavior. The server hears of it before all that comes later, so the
// answer need not wait for it.
func (l *clientLock) Cancel(r *lock.Request, reason messages.Reason) {
	if o := l.open[r.ID]; o != nil && r.TakenBack() {
		l.tellServer(o, holdExpiredMessage(o.number))
		l.forget(r.ID)
		return // the lock.Actor has told the owner
	}
	l.withdraw(r.ID)
	l.RefuseRequest(r.ID, requests.Reason(reason))
}

// withdraw has the server cancel a request.
func (l *clientLock) withdraw(id requests.ID) {
	o := l.open[id]
	if o != nil && o.epoch != 0 {
		l.tellServer(o, cancelMessage(o.number, o.awaits))
	}
	l.forget(id)
}

// AwaitNode implements lock.NodeAwaiter. A server of an earlier version does not answer, and is not awaited.
func (l *clientLock) AwaitNode(id requests.ID) (await func(then func())) {
	o := l.open[id]
	if o == nil || o.epoch == 0 || !l.session.awaitsNodes.Load() {
		return func(then func()) { then() }
	}
	o.awaits = true
	number, epoch := o.number, o.epoch
	return func(then func()) {
		overdue := time.AfterFunc(l.session.Session().Timeout, func() { l.Self.Tell(awaitOverdue{number}) })
		if l.awaited == nil {
			l.awaited = awaitedEnds{}
		}
		l.awaited[number] = &awaitedEnd{epoch, overdue, then}
	}
}

func (l *clientLock) forget(id requests.ID) {
	o := l.open[id]
	if o == nil {
		return
	}
	delete(l.byNumber, o.number)
	delete(l.open, id)
	if o.hold != (hold{}) {
		if l.holdCounts[o.hold]--; l.holdCounts[o.hold] == 0 {
			delete(l.holdCounts, o.hold)
		}
	}
}

// holdOf returns what the owner of a request holds by a grant; nothing if it has no name, or the
// lock no re-entry.
func (l *clientLock) holdOf(r *lock.Request, g *messages.Granted) hold {
	if r.OwnerName() == "" || l.Recipe.MaxPermits > 0 {
		return hold{}
	}
	return hold{r.OwnerName(), g.Path + "/" + g.Node}
}

// Release implements lock.Behavior.
func (l *clientLock) Release(r *lock.Request) {
	o := l.open[r.ID]
	l.tellServer(o, releaseMessage(o.number))
}

// Epoch implements lock.Behavior.
func (l *clientLock) Epoch() uint64 { return l.epoch }

// SessionOverdue implements lock.Behavior.
func (l *clientLock) SessionOverdue() { l.sessionLost(l.epoch) }

// Idle implements lock.Behavior.
func (l *clientLock) Idle() bool { return len(l.open) == 0 && len(l.awaited) == 0 }

// Tick implements lock.Behavior.
func (l *clientLock) Tick(bool) {}

// Close implements lock.Behavior. It ends the grants as the end of a process does: a lock-delay
// begins.
func (l *clientLock) Close(bool) {
	l.EndAll(requests.Closed)
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		if o := l.open[id]; o.acquire == nil { // the owner has not released
			l.tellServer(o, holdExpiredMessage(o.number))
		}
		l.withdraw(id)
	}
	l.awaited.endUpTo(math.MaxUint64)
}

// ReceiveAfterStop implements lock.Behavior. A grant that comes is the server's to take back: Close
// has cancelled it.
func (l *clientLock) ReceiveAfterStop(_ ask.Recipient, msg any) {
	if in, is := msg.(incoming); is {
		l.session.handled(in)
	}
}

// ---- messages of the session

// ReceiveOther implements lock.Behavior.
func (l *clientLock) ReceiveOther(_ ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case incoming:
		l.onIncoming(msg)
		l.session.handled(msg)
		return true
	case awaitOverdue:
		l.awaited.end(msg.number)
		return true
	case manager.StateChange:
		switch msg.State {
		case messages.SessionState_LOST:
			l.sessionLost(msg.Epoch)
		case messages.SessionState_CONNECTED:
			l.sendWaiting(msg.Epoch)
		}
	}
	return false // the lock.Actor takes the change, too
}

// sessionLost ends the grants. What waits is sent again in the next session, unless it was: the lock
// may hear of the loss late.
func (l *clientLock) sessionLost(epoch uint64) {
	l.epoch = 0
	l.Detail = l.session.OutageText()
	l.awaited.endUpTo(epoch)
	for id, r := range l.Requests() {
		o := l.open[id]
		switch {
		case o == nil || o.epoch > epoch:
		case r.Holds():
			l.forget(id)
			l.Lose(id, requests.SessionLost)
		case r.Granted != nil:
			l.forget(id)
			l.RefuseRequest(id, requests.SessionLost)
		default:
			delete(l.byNumber, o.number)
			o.epoch, o.number = 0, 0
		}
	}
	for id, r := range l.Requests() {
		if r.Granted == nil && l.LostBy(r.OwnerName()) != 0 { // it was to be a re-entry, not a new grant
			l.withdraw(id)
			l.RefuseRequest(id, requests.SessionLost)
		}
	}
}

// sendWaiting sends what waits and was not sent in the session. It keeps the order.
func (l *clientLock) sendWaiting(epoch uint64) {
	var waiting []requests.ID
	for id, r := range l.Requests() {
		if o := l.open[id]; o != nil && r.Granted == nil && o.epoch < epoch {
			waiting = append(waiting, id)
		}
	}
	slices.Sort(waiting) // an ID begins with the number of the request
	for _, id := range waiting {
		delete(l.byNumber, l.open[id].number)
		l.send(id, l.open[id])
	}
}

// onIncoming handles a message of the server about a request.
func (l *clientLock) onIncoming(in incoming) {
	id, is := l.byNumber[in.number]
	if !is {
		l.awaited.take(in) // it was cancelled
		return
	}
	if l.session.LostAt(in.epoch, l.session.Now()) {
		return // the loss of the session follows
	}
	r := l.Request(id)
	if !l.fits(r, in.message) {
		l.endUnfit(r, in.message)
		return
	}
	switch msg := in.message.(type) {
	case *messages.Granted:
		l.open[id].acquire = nil
		l.epoch = in.epoch
		setEpoch(msg, in.epoch)
		by := l.holdOf(r, msg)
		if l.open[id].hold = by; by != (hold{}) {
			l.holdCounts[by]++
		}
		l.Grant(r, msg, msg.Step)
	case *messages.Refused:
		l.forget(id)
		l.Detail = l.detail(msg.Detail)
		l.RefuseRequest(id, knownReason(msg.Reason))
	case *messages.Released:
		by := l.open[id].hold
		l.forget(id)
		l.ConfirmRelease(id, l.holdCounts[by])
	case *messages.Lost:
		o := l.open[id]
		l.forget(id)
		l.Detail = l.detail(msg.Detail)
		if r.Holds() {
			l.Lose(id, knownReason(msg.Reason))
			l.tellServer(o, releaseMessage(o.number)) // the lock may hold other nodes of the grant until then
		} else {
			l.RefuseRequest(id, knownReason(msg.Reason))
		}
	case *messages.RevokeRequested:
		l.RequestRevoke(id)
	case *messages.Contended:
		l.NotifyContended(id)
	}
}

// endUnfit handles a message that no honest server sends about a request in this state. The session
// takes the request for ended, or granted: the owner must not wait for an answer that does not come,
// or hold what the server takes for released.
func (l *clientLock) endUnfit(r *lock.Request, msg any) {
	switch msg.(type) {
	case *messages.RevokeRequested, *messages.Contended:
		return
	case *messages.Granted:
		if r.Granted != nil {
			return
		}
	}
	l.withdraw(r.ID)
	l.Detail = fmt.Sprintf("the lock server breaks the protocol: its %T does not fit the request", msg)
	if reason := requests.Reason(messages.Reason_INTERNAL); r.Holds() {
		l.Lose(r.ID, reason)
	} else {
		l.RefuseRequest(r.ID, reason)
	}
}

// fits reports whether a lock server may send the message about a request in this state.
func (l *clientLock) fits(r *lock.Request, msg any) bool {
	switch msg := msg.(type) {
	case *messages.Granted:
		return r.Granted == nil && l.isGrant(l.open[r.ID], msg)
	case *messages.Refused:
		return !r.Holds()
	case *messages.Released:
		return r.Released
	}
	return r.Granted != nil
}

// isGrant reports whether a Granted is by nodes of the lock that the request asks for: one node, or
// as many as the lock has members, or the request permits.
func (l *clientLock) isGrant(o *openRequest, g *messages.Granted) bool {
	members, parts := l.spec.GetMembers(), 0
	switch {
	case len(members) > 0:
		parts = len(members)
	case l.Recipe.MaxPermits > 0 && o.acquire.GetPermits() > 1:
		parts = int(o.acquire.Permits)
	}
	if len(g.Parts) != parts {
		return false
	}
	for i, part := range g.Parts {
		path := l.Path
		if len(members) > 0 {
			path = members[i].Path
		}
		if !isByNode(part, path) {
			return false
		}
	}
	if len(members) > 0 {
		return isByNode(g, members[0].Path)
	}
	return isByNode(g, l.Path)
}

// detail returns the detail without the path, which the lock.Actor adds.
func (l *clientLock) detail(d string) string {
	if d == l.Path {
		return ""
	}
	return strings.TrimPrefix(d, l.Path+": ")
}

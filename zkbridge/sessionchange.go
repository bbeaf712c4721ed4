package zkbridge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// beat takes the session for lost if its deadline has passed. Otherwise it sends a ping, and sets
// the timer for the next beat. By beats the bridge also notices the deadline soon after the machine
// was suspended, when timers are late.
func (a *bridgeActor) beat() {
	if a.epoch.Conn.Overdue(a.bridge.Now()) {
		a.OnSessionEvent(epoch.Overdue, "the session's deadline has passed: ZooKeeper may have expired it")
		return
	}
	if conn := a.epoch.Conn.Active(); conn != nil {
		conn.Ping()
	}
	a.scheduleBeat()
}

// scheduleBeat sets the timer for the next beat, which is at the deadline at the latest.
func (a *bridgeActor) scheduleBeat() {
	conn := a.epoch.Conn
	a.epoch.AfterFunc(min(conn.Left(), a.bridge.beatPause(conn.Timeout())), a.beat)
}

// OnSessionEvent implements epoch.Owner, for the present epoch.
func (a *bridgeActor) OnSessionEvent(e epoch.Event, detail string) {
	was := a.session
	next, changed := was.After(e, a.epoch.Number)
	switch {
	case !changed && (e == epoch.Expired || e == epoch.Refused): // it ended before it was established (still LOST)
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLostConn)
		a.openAfterPause()
		return
	case !changed:
		return
	case e == epoch.Established && !a.checkTimeout():
		return // checkTimeout has made the bridge give up
	}
	a.session = next
	a.publish(detail)
	switch next.State {
	case messages.SessionState_LOST:
		a.addLostSession(a.epoch.Conn) // so that the session is closed later, on another connection: lostsession.go
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLostConn)
		if e == epoch.Refused {
			a.openAfterPause() // the next one is refused, too
		} else {
			a.open()
		}
	case messages.SessionState_SUSPENDED:
		a.failFastCalls()
	case messages.SessionState_CONNECTED:
		a.onConnected(was)
	}
}

// store stores the present state for the methods of Bridge, and for later subscribers.
func (a *bridgeActor) store(detail string) *snapshot {
	s := a.takeSnapshot(detail)
	a.bridge.state.Store(s)
	a.bridge.countState(s.Session)
	a.lastChange = &messages.SessionChanged{State: s.State, Epoch: s.Epoch, SessionId: s.ID, Detail: detail}
	return s
}

// publish stores the present state, and tells it to the log and to the subscribers, in the order in
// which they subscribed.
func (a *bridgeActor) publish(detail string) {
	s := a.store(detail)
	for _, to := range slices.SortedFunc(maps.Keys(a.subs), func(x, y ask.Recipient) int { return cmp.Compare(a.subs[x], a.subs[y]) }) {
		a.tellState(to)
	}
	a.cfg.Log.Info("session is "+s.State.String(), "epoch", s.Epoch, "session", messages.FormatSession(s.ID), "why", detail)
}

// tellState tells the present state to a subscriber. A subscriber that panics is not told again,
// and does not keep the others from being told.
func (a *bridgeActor) tellState(to ask.Recipient) {
	if !reply.Tell(a.cfg.Log, to, a.lastChange) {
		delete(a.subs, to)
	}
}

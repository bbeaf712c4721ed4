package zkbridge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// store stores the present state for the methods of Bridge, and for later subscribers.
func (a *bridgeActor) store(detail string) *snapshot {
	s := &snapshot{Session: Session{State: a.session.State, Epoch: a.session.Epoch}, failed: a.failed}
	if a.epoch != nil {
		s.conn = a.epoch.Conn
		s.ID, s.Timeout = a.epoch.Conn.ID(), a.epoch.Conn.Timeout()
	}
	if s.State == messages.SessionState_SUSPENDED || s.State == messages.SessionState_LOST {
		s.outageSince, s.outageReason = time.Now(), detail
		if last := a.bridge.state.Load(); last != nil && !last.outageSince.IsZero() {
			s.outageSince = last.outageSince
		}
	}
	a.bridge.state.Store(s)
	a.bridge.counters.countState(s.Session)
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

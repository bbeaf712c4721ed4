package remote

import (
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Subscribe implements messages.BridgeHandler.
func (s *session) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	s.subscribers.add(from)
	from.Tell(s.changed(s.state.Load(), ""))
}

// Unsubscribe implements messages.BridgeHandler.
func (s *session) Unsubscribe(from ask.Recipient, _ *messages.Unsubscribe) {
	delete(s.subscribers.order, from)
}

func (s *session) changed(now *snapshot, detail string) *messages.SessionChanged {
	return &messages.SessionChanged{State: now.State, Epoch: now.Epoch, SessionId: now.ID, Detail: detail}
}

// set stores a state for all goroutines, and then tells the subscribers.
func (s *session) set(state messages.SessionState, change func(*snapshot), detail string) {
	was := s.state.Load()
	now := *was
	now.State = state
	if change != nil {
		change(&now)
	}
	switch state {
	case messages.SessionState_SUSPENDED, messages.SessionState_LOST:
		now.outageWhy = detail
		if now.outageSince.IsZero() {
			now.outageSince = time.Now()
			if was.Epoch != 0 && s.suspended == "" { // the last answer came before the end of the stream
				now.outageSince = s.clock.TimeOf(s.lease.heard)
			}
		}
	default:
		now.outageSince, now.outageWhy = time.Time{}, ""
	}
	s.state.Store(&now)
	switch {
	case state == messages.SessionState_SUSPENDED:
		s.suspensions.Add(1)
		s.failQuestions(messages.Reason_DISCONNECTED, s.OutageText())
	case state == messages.SessionState_LOST:
		s.lost.Add(1)
		s.failQuestions(messages.Reason_DISCONNECTED, s.OutageText())
	}
	s.subscribers.tell(s.changed(&now, detail))
	s.log.Info("session with the lock server is "+state.String(), "epoch", now.Epoch, "server", s.lease.id.server, "why", detail)
}

func (s *session) suspend(why string) {
	if s.state.Load().State == messages.SessionState_CONNECTED {
		s.set(messages.SessionState_SUSPENDED, nil, why)
	}
}

// resume is called when the server may be connected, and the lease valid, again.
func (s *session) resume() {
	now := s.state.Load()
	switch {
	case s.suspended != "" || s.lease.valid == nil || s.stream == nil:
	case now.State == messages.SessionState_SUSPENDED:
		s.set(messages.SessionState_CONNECTED, nil, "the stream to the lock server is back")
	case now.State == messages.SessionState_LOST:
		s.set(messages.SessionState_CONNECTED, func(n *snapshot) {
			n.Epoch++
			n.ID, n.lease, n.Timeout = s.zooKeeper, s.lease.valid, s.lease.validUntil()-s.clock.Now()
		}, "the lock server "+s.lease.id.server+" has granted a lease")
	}
}

// onServerState takes in what the server says of its ZooKeeper session.
func (s *session) onServerState(now *messages.State) {
	s.suspended, s.zooKeeper = "", now.GetSessionId()
	if !now.GetConnected() {
		s.suspended = "the lock server has no connection to ZooKeeper: " + now.GetDetail()
		s.suspend(s.suspended)
		return
	}
	s.resume()
}

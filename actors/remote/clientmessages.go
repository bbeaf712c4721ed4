package remote

import (
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// maxUnconfirmed bounds the messages that the server has not confirmed: an Acquire beyond it is
// refused.
const maxUnconfirmed = 1 << 16

// onOutgoing sends a message of a lock's actor to the server. The actor sends a request again if its
// epoch is over.
func (s *session) onOutgoing(o outgoing) {
	now := s.state.Load()
	lost := now.State == messages.SessionState_LOST
	if o.epoch != now.Epoch || lost && (s.lease.id.lease != 0 || s.stream == nil) { // a new lease has no epoch yet
		return
	}
	switch what := o.message.What.(type) {
	case *messages.ClientMessage_Acquire:
		if lost {
			return
		}
		refuse := func(reason messages.Reason, detail string) {
			o.from.Tell(incoming{o.epoch, o.number, &messages.Refused{Reason: reason, Detail: detail}, false})
		}
		if len(s.messages.pending) >= maxUnconfirmed {
			refuse(messages.Reason_LIMIT_EXCEEDED, "too many messages wait for the lock server")
			return
		}
		if err := s.messages.add(o.message); err != nil {
			refuse(messages.Reason_INVALID, err.Error())
			return
		}
		s.requests.targets[o.number] = &target{lock: o.from}
		return
	case *messages.ClientMessage_Cancel:
		if !what.Cancel.AwaitNode {
			s.requests.forget(o.number)
		}
	case *messages.ClientMessage_HoldExpired:
		s.requests.forget(o.number)
	}
	s.messages.add(o.message) // numbers alone, which can be sent
}

// deliver passes a message of the server on.
func (s *session) deliver(m *messages.ServerMessage) {
	switch m := m.GetWhat().(type) {
	case *messages.ServerMessage_Granted:
		s.requests.grant(m.Granted.GetRequestId())
		s.pass(m.Granted.GetRequestId(), m.Granted, false)
	case *messages.ServerMessage_Refused:
		s.pass(m.Refused.GetRequestId(), m.Refused, true)
	case *messages.ServerMessage_Released:
		s.pass(m.Released.GetRequestId(), m.Released, true)
	case *messages.ServerMessage_Lost:
		s.pass(m.Lost.GetRequestId(), m.Lost, true)
	case *messages.ServerMessage_RevokeRequested:
		s.pass(m.RevokeRequested.GetRequestId(), m.RevokeRequested, false)
	case *messages.ServerMessage_Contended:
		s.pass(m.Contended.GetRequestId(), m.Contended, false)
	case *messages.ServerMessage_Answer:
		s.questions.answered(m.Answer)
		s.confirms = s.confirms || !isLast(m.Answer)
	}
}

func (s *session) pass(number uint64, msg any, last bool) {
	t := s.requests.targets[number]
	if t == nil {
		return // the request was cancelled, and the server has not heard of that yet
	}
	endsGrant := last && t.granted
	if endsGrant {
		s.settling.Add(1)
	}
	t.lock.RunInlineIfIdle(incoming{s.state.Load().Epoch, number, msg, endsGrant})
	if last {
		s.requests.forget(number)
	}
}

// handled is called by a lock's actor that has handled a message of the server. The owner of an
// ended grant knows of the end by then, so that the session may leave a server that is about to end.
func (s *session) handled(in incoming) {
	if in.endsGrant && s.settling.Add(-1) == 0 && s.goingAway.Load() {
		s.self.Tell(settled{})
	}
}

// Flush implements host.Collector: it sends what the messages since the last Flush have led to.
func (s *session) Flush() {
	for s.stream != nil && s.messages.unsent() {
		if s.stream.frames.extend(s.extend) {
			continue
		}
		if !s.stream.frames.hasRoom(func() { s.self.Tell(writable{}) }) {
			return
		}
		s.sendMessages()
	}
	s.confirmAnswers()
}

// confirmAnswers confirms answers if no other frame has done it: the server sends the next answer to a
// question when the last one is confirmed. A renewal might come seconds later.
func (s *session) confirmAnswers() {
	if s.confirms && s.stream != nil && s.lease.id.lease != 0 && s.stream.frames.hasRoom(func() { s.self.Tell(writable{}) }) {
		s.confirms = false
		s.stream.frames.put(&messages.ClientFrame{Received: s.messages.delivered})
	}
}

// extend puts messages into a frame that has some, and reports whether it has.
func (s *session) extend(last *messages.ClientFrame) bool {
	has := len(last.Messages)
	if has == 0 {
		return false
	}
	last.Received, s.confirms = s.messages.delivered, false
	last.Messages = s.messages.extend(last.First, last.Messages)
	return len(last.Messages) > has
}

// flushMessages sends all that is not sent yet.
func (s *session) flushMessages() {
	for s.messages.unsent() {
		s.sendMessages()
	}
}

func (s *session) sendMessages() {
	first, all := s.messages.nextFrame()
	s.confirms = false
	s.stream.frames.put(&messages.ClientFrame{Received: s.messages.delivered, First: first, Messages: all})
}

// send is what a lock's actor calls to have a message sent to the server.
func (s *session) send(epoch, number uint64, from *host.Ref, m *messages.ClientMessage) {
	s.self.RunInlineIfIdle(outgoing{epoch, number, from, m})
}

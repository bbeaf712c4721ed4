package remote

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

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
	if o.epoch != now.Epoch || lost && (s.id.lease != 0 || s.stream == nil) { // a new lease has no epoch yet
		return
	}
	switch o.message.What.(type) {
	case *messages.ClientMessage_Acquire:
		if lost {
			return
		}
		if len(s.messages.pending) >= maxUnconfirmed {
			o.from.Tell(incoming{o.epoch, o.number, &messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED,
				Detail: "too many messages wait for the lock server"}, false})
			return
		}
		s.requests[o.number] = &target{lock: o.from}
	case *messages.ClientMessage_Cancel, *messages.ClientMessage_HoldExpired:
		s.forget(o.number)
	}
	s.messages.add(o.message)
}

// forget drops a request, of which the lock's actor wants to hear no more.
func (s *session) forget(number uint64) {
	if t := s.requests[number]; t != nil && t.granted {
		s.held--
	}
	delete(s.requests, number)
}

// deliver passes a message of the server on.
func (s *session) deliver(m *messages.ServerMessage) {
	switch m := m.GetWhat().(type) {
	case *messages.ServerMessage_Granted:
		if t := s.requests[m.Granted.GetRequestId()]; t != nil && !t.granted {
			t.granted = true
			s.held++
		}
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
		if q := s.questions[m.Answer.GetId()]; q != nil {
			q.answered(m.Answer)
			if m.Answer.Reason != 0 || len(m.Answer.Value) == 0 {
				delete(s.questions, m.Answer.Id)
			}
		}
	}
}

func (s *session) pass(number uint64, msg any, last bool) {
	t := s.requests[number]
	if t == nil {
		return // the request was cancelled, and the server has not heard of that yet
	}
	endsGrant := last && t.granted
	if endsGrant {
		s.settling.Add(1)
	}
	t.lock.RunInlineIfIdle(incoming{s.state.Load().Epoch, number, msg, endsGrant})
	if last {
		s.forget(number)
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
}

// extend puts messages into a frame that has some, and reports whether it has.
func (s *session) extend(last *messages.ClientFrame) bool {
	has := len(last.Messages)
	if has == 0 {
		return false
	}
	last.Received = s.messages.delivered
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
	s.stream.frames.put(&messages.ClientFrame{Received: s.messages.delivered, First: first, Messages: all})
}

// ---- questions

// question is a question to the server, whose answers a goroutine waits for.
type question struct {
	msg *messages.Question

	mu      sync.Mutex
	answers []*messages.Answer
	wake    chan struct{} // has room for one
}

// withdrawn is the message that a question needs no more answers.
type withdrawn struct{ id uint64 }

func (q *question) answered(a *messages.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers = append(q.answers, a)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *question) take() (all []*messages.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, q.answers = q.answers, nil
	return all
}

// Ask implements manager.Remote.
func (s *session) Ask(ctx context.Context, msg *messages.Question, next func(value []byte) (more bool)) error {
	if problem := tooLarge("question", proto.Size(msg), maxAnswer); problem != "" {
		return &messages.Refused{Reason: messages.Reason_INVALID, Detail: problem}
	}
	msg.Id = s.lastNumber.Add(1)
	q := &question{msg: msg, wake: make(chan struct{}, 1)}
	s.self.Tell(q)
	for {
		select {
		case <-q.wake:
		case <-ctx.Done():
			s.self.Tell(withdrawn{msg.Id})
			return s.Explain(context.Cause(ctx))
		}
		for _, a := range q.take() {
			switch {
			case a.Reason != 0:
				return &messages.Refused{Reason: a.Reason, Detail: a.Detail}
			case len(a.Value) == 0:
				return nil
			case !next(a.Value):
				s.self.Tell(withdrawn{msg.Id})
				return nil
			}
		}
	}
}

// ask sends a question. Without a connection there is no answer.
func (s *session) ask(q *question) {
	if s.state.Load().State != messages.SessionState_CONNECTED {
		q.answered(&messages.Answer{Reason: messages.Reason_DISCONNECTED, Detail: s.OutageText()})
		return
	}
	s.questions[q.msg.Id] = q
	s.messages.add(&messages.ClientMessage{What: &messages.ClientMessage_Question{Question: q.msg}})
}

func (s *session) withdraw(w withdrawn) {
	if s.questions[w.id] == nil {
		return
	}
	delete(s.questions, w.id)
	if s.id.lease != 0 {
		s.messages.add(&messages.ClientMessage{What: &messages.ClientMessage_Withdraw{Withdraw: w.id}})
	}
}

// failQuestions ends all open questions. The server stops answering at the end of the lease.
func (s *session) failQuestions(why messages.Reason, detail string) {
	for _, id := range slices.Sorted(maps.Keys(s.questions)) {
		s.questions[id].answered(&messages.Answer{Reason: why, Detail: detail})
		s.withdraw(withdrawn{id})
	}
}

// send is what a lock's actor calls to have a message sent to the server.
func (s *session) send(epoch, number uint64, from *host.Ref, m *messages.ClientMessage) {
	s.self.RunInlineIfIdle(outgoing{epoch, number, from, m})
}

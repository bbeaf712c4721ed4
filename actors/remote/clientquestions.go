package remote

import (
	"context"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/messages"
)

// Ask implements manager.Remote.
func (s *session) Ask(ctx context.Context, msg *messages.Question, next func(value []byte) (more bool)) error {
	if problem := problemOfQuestion(msg); problem != "" {
		return &messages.Refused{Reason: messages.Reason_INVALID, Detail: problem}
	}
	msg.Id = s.lastNumber.Add(1)
	q := &question{msg: msg, wake: make(chan struct{}, 1)}
	s.self.Tell(q)
	for {
		select {
		case <-q.wake:
		case <-ctx.Done():
			s.self.Tell(questionWithdrawn{msg.Id})
			return s.Explain(context.Cause(ctx))
		}
		value, end := q.take()
		if value != nil && !next(value) {
			s.self.Tell(questionWithdrawn{msg.Id})
			return nil
		}
		switch {
		case end == nil:
		case end.Reason != 0:
			return &messages.Refused{Reason: end.Reason, Detail: end.Detail}
		default:
			return nil
		}
	}
}

// ask sends a question. Without a connection there is no answer.
func (s *session) ask(q *question) {
	if s.state.Load().State != messages.SessionState_CONNECTED {
		q.answered(&messages.Answer{Reason: messages.Reason_DISCONNECTED, Detail: s.OutageText()})
		return
	}
	if err := s.messages.add(&messages.ClientMessage{What: &messages.ClientMessage_Question{Question: q.msg}}); err != nil {
		q.answered(&messages.Answer{Reason: messages.Reason_INVALID, Detail: err.Error()})
		return
	}
	s.questions[q.msg.Id] = q
}

func (s *session) withdraw(w questionWithdrawn) {
	if s.questions[w.id] == nil {
		return
	}
	delete(s.questions, w.id)
	if s.lease.id.lease != 0 {
		s.messages.add(&messages.ClientMessage{What: &messages.ClientMessage_Withdraw{Withdraw: w.id}})
	}
}

// failQuestions ends all open questions. The server stops answering at the end of the lease.
func (s *session) failQuestions(why messages.Reason, detail string) {
	for _, id := range slices.Sorted(maps.Keys(s.questions)) {
		s.questions[id].answered(&messages.Answer{Reason: why, Detail: detail})
		s.withdraw(questionWithdrawn{id})
	}
}

package remote

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// question has a goroutine answer a question of the client.
func (c *servedClient) question(q *messages.Question) {
	id := q.GetId()
	fail := func(reason messages.Reason, detail string) {
		c.send(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: id, Reason: reason, Detail: detail}}})
	}
	reason, detail := c.problemOfQuestion(q)
	switch {
	case c.questions[id] != nil:
		fail(messages.Reason_INVALID, fmt.Sprintf("id %d is used by an open question", id))
		return
	case reason != 0:
		fail(reason, detail)
		return
	case len(c.questions) >= c.server.cfg.MaxQuestionsPerClient:
		c.server.counts.countRefusal(LimitQuestions)
		fail(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d questions are open, the most that the lock server takes of one client", len(c.questions)))
		return
	}
	ctx, cancel := context.WithCancel(c.reading.In(context.Background()))
	asked := &servedQuestion{id: id, cancel: cancel}
	c.questions[id] = asked
	go func() {
		var tooLarge error
		err := c.answer(ctx, q, func(value []byte) bool {
			if len(value) > maxAnswer {
				c.server.counts.countRefusal(LimitAnswers)
				tooLarge = &messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED,
					Detail: fmt.Sprintf("the answer has %d bytes: a lock server sends %d at most", len(value), maxAnswer)}
				return false
			}
			c.self.Tell(answerTo{asked, &messages.Answer{Id: id, Value: value}})
			return ctx.Err() == nil
		})
		err = cmp.Or(tooLarge, err)
		c.noteChange(q, err)
		answer := &messages.Answer{Id: id}
		if err != nil {
			answer.Reason, answer.Detail = reasonOf(err)
		}
		c.self.Tell(answerTo{asked, answer})
	}()
}

// answer answers a question as inspection.Answer does.
func (c *servedClient) answer(ctx context.Context, q *messages.Question, next func(value []byte) (more bool)) error {
	if q.GetKind() == clientsQuestion {
		return c.server.answerClients(ctx, q.GetArguments(), next)
	}
	return inspection.Answer(ctx, c.server.manager, q, &inspection.Asker{Owns: c.owns, MayInspect: c.mayInspect}, next)
}

// problemOfQuestion returns why the client may not ask a question; 0 if it may.
func (c *servedClient) problemOfQuestion(q *messages.Question) (messages.Reason, string) {
	if problem := problemOfLock(q.GetPath(), q.GetLock()); problem != "" {
		return messages.Reason_INVALID, problem
	}
	if q.GetKind() == clientsQuestion {
		if err := c.mayInspect("/"); err != nil {
			return reasonOf(err)
		}
		return 0, ""
	}
	paths, changes, err := inspection.PathsOf(q)
	if err != nil {
		return reasonOf(err)
	}
	verb := VerbInspect
	if changes {
		verb = VerbChange
	}
	if err := c.allow(verb, paths...); err != nil {
		return reasonOf(err)
	}
	return 0, ""
}

// mayInspect returns why the client must not hear of what is at a path, or nil. Any goroutine may
// call it.
func (c *servedClient) mayInspect(path string) error { return c.allow(VerbInspect, path) }

// owns reports whether a request is the client's. Any goroutine may call it.
func (c *servedClient) owns(from ask.Recipient) bool {
	r, is := from.(*servedRequest)
	return is && r.client == c
}

// onAnswer has an answer of the goroutine of a question wait. The last one comes when the goroutine is
// about to end.
func (c *servedClient) onAnswer(a answerTo) {
	q, last := a.of, isLast(a.answer)
	if last {
		q.cancel()
	}
	switch {
	case c.over:
		return
	case q.withdrawn:
		if last {
			delete(c.questions, q.id)
		}
		return
	}
	if last && q.failed != nil {
		a.answer = &messages.Answer{Id: q.id}
		a.answer.Reason, a.answer.Detail = reasonOf(q.failed)
	}
	if last || q.failed == nil {
		if q.failed = c.answers.put(q, a.answer); q.failed != nil {
			c.server.counts.countRefusal(LimitAnswers)
			q.cancel() // the last answer follows
		}
	}
	c.sendAnswers()
}

// sendAnswers sends what may be sent of the answers that wait.
func (c *servedClient) sendAnswers() {
	for q, answer := c.answers.next(); answer != nil; q, answer = c.answers.next() {
		c.send(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: answer}})
		c.answers.noteSent(q, c.messages.last(), len(answer.Value))
		if isLast(answer) {
			delete(c.questions, q.id)
		}
	}
}

// withdraw ends a question: it is not answered any more.
func (c *servedClient) withdraw(q *servedQuestion) {
	q.withdrawn = true
	q.cancel()
	if q.end != nil { // its goroutine has ended
		delete(c.questions, q.id)
	}
	c.answers.drop(q)
}

// noteChange calls ServerConfig.Changed for a question that has something changed. A panic of it must not end
// the process.
func (c *servedClient) noteChange(q *messages.Question, err error) {
	if c.server.cfg.Changed == nil {
		return
	}
	if _, changes, wrong := inspection.PathsOf(q); wrong != nil || !changes {
		return
	}
	defer func() {
		if failure := recover(); failure != nil {
			c.server.logLimited(slog.LevelError, "Changed of a lock server panics, and the client gets its answer", "client", c.text(), "path", q.GetPath(),
				"failure", failure, "stack", string(debug.Stack()), "do", "correct Changed")
		}
	}()
	c.server.cfg.Changed(c.peer, Change{Kind: q.GetKind(), Path: q.GetPath(), Arguments: slices.Clone(q.GetArguments())}, err)
}

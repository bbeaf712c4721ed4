package remote

import (
	"cmp"
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// servedQuestion is a question until its goroutine has ended, also if it was withdrawn.
type servedQuestion struct {
	cancel    context.CancelFunc
	withdrawn bool
}

func (q *servedQuestion) withdraw() {
	q.withdrawn = true
	q.cancel()
}

// answerTo is an answer to a question of the client, or the end of the answers.
type answerTo struct {
	answer *messages.Answer
	last   bool
}

// maxQuestions bounds the questions of one client that are open, and maxAnswer the bytes of one and
// of an answer: no transport carries a larger one.
const (
	maxQuestions = 64
	maxAnswer    = 1 << 20
)

// question has a goroutine answer a question of the client.
func (c *servedClient) question(q *messages.Question) {
	id := q.GetId()
	fail := func(reason messages.Reason, detail string) {
		c.out.add(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: id, Reason: reason, Detail: detail}}})
	}
	paths, changes := access.PathsOf(q)
	verb := VerbInspect
	if changes {
		verb = VerbChange
	}
	problem := problemOfLock(q.GetPath(), q.GetLock())
	switch err := c.allow(verb, paths...); {
	case problem != "":
		fail(messages.Reason_INVALID, problem)
		return
	case c.questions[id] != nil:
		fail(messages.Reason_INVALID, fmt.Sprintf("id %d is used by an open question", id))
		return
	case err != nil:
		fail(messages.Reason_NO_AUTH, err.Error())
		return
	case len(c.questions) >= maxQuestions:
		fail(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d questions are open, the most that the lock server takes of one client", maxQuestions))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.questions[id] = &servedQuestion{cancel: cancel}
	go func() {
		var tooLarge error
		err := access.Answer(ctx, c.server.locks, q, c.owns, func(value []byte) bool {
			if len(value) > maxAnswer {
				tooLarge = &messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED,
					Detail: fmt.Sprintf("the answer has %d bytes: a lock server sends %d at most", len(value), maxAnswer)}
				return false
			}
			c.self.Tell(answerTo{&messages.Answer{Id: id, Value: value}, false})
			return ctx.Err() == nil
		})
		err = cmp.Or(tooLarge, err)
		answer := &messages.Answer{Id: id}
		if err != nil {
			answer.Reason, answer.Detail = reasonOf(err)
		}
		c.self.Tell(answerTo{answer, true})
	}()
}

// owns reports whether a request is the client's. Any goroutine may call it.
func (c *servedClient) owns(from ask.Recipient) bool {
	r, is := from.(*servedRequest)
	return is && r.client == c
}

func (c *servedClient) onAnswer(a answerTo) {
	q := c.questions[a.answer.Id]
	if q == nil || c.over {
		return
	}
	if a.last {
		q.cancel()
		delete(c.questions, a.answer.Id)
	}
	if q.withdrawn {
		return
	}
	c.out.add(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: a.answer}})
}

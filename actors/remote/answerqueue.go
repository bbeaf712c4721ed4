package remote

import (
	"context"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/messages"
)

// servedQuestion is a question until its goroutine has ended, also if it was withdrawn.
type servedQuestion struct {
	id        uint64
	cancel    context.CancelFunc
	withdrawn bool
	failed    error // its answers do not go to the client, but this

	value, end *messages.Answer // that wait; nil if there is none
}

// The questions of a client read maxReading directories at once, and maxRead bytes of each. Other questions
// wait. A question about a larger directory fails with LIMIT_EXCEEDED: its answer would be too large.
const (
	maxReading = 4
	maxRead    = 8 << 20
)

// answerQueue holds the answers to the questions of a client. What belongs to the client's lease goes
// first: an answer is sent only while few bytes of answers are not confirmed. Of each question one answer
// waits, the newest, and none is sent before the client has confirmed the last one. It does no I/O.
type answerQueue struct {
	waiting      []*servedQuestion // that have an answer to send, in the order in which the first came
	waitingBytes int
	sent         []sentAnswer // that are not confirmed, in the order of their numbers
	sentBytes    int
}

// sentAnswer is an answer that the client has not confirmed.
type sentAnswer struct {
	of     *servedQuestion
	number uint64
	size   int
}

// The limits of a client's answers. One answer goes, whatever its size, while no other one is under way.
const (
	maxAnswersSent    = 256 << 10
	maxAnswersWaiting = 16 << 20
)

// put has an answer wait. It replaces the one of the same question that waits. The error is that too
// many bytes of answers wait.
func (a *answerQueue) put(q *servedQuestion, answer *messages.Answer) error {
	if isLast(answer) {
		q.end = answer
	} else {
		bytes := a.waitingBytes - len(q.value.GetValue()) + len(answer.Value)
		if bytes > maxAnswersWaiting {
			return &messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED,
				Detail: fmt.Sprintf("%d bytes of answers wait for the client: %d is the most", bytes, maxAnswersWaiting)}
		}
		q.value, a.waitingBytes = answer, bytes
	}
	if !slices.Contains(a.waiting, q) {
		a.waiting = append(a.waiting, q)
	}
	return nil
}

// next returns the next answer to send, or nil. Behind an answer that is the last one the question has
// ended. The caller calls noteSent.
func (a *answerQueue) next() (*servedQuestion, *messages.Answer) {
	for i, q := range a.waiting {
		answer := q.value
		switch {
		case answer == nil:
			answer = q.end
		case a.isSent(q), a.sentBytes > 0 && a.sentBytes+len(answer.Value) > maxAnswersSent:
			continue
		}
		a.waitingBytes -= len(q.value.GetValue())
		if q.value = nil; q.end == nil || answer == q.end {
			a.waiting = slices.Delete(a.waiting, i, i+1)
		}
		return q, answer
	}
	return nil, nil
}

func (a *answerQueue) isSent(q *servedQuestion) bool {
	return slices.ContainsFunc(a.sent, func(s sentAnswer) bool { return s.of == q })
}

func (a *answerQueue) noteSent(q *servedQuestion, number uint64, size int) {
	a.sent = append(a.sent, sentAnswer{q, number, size})
	a.sentBytes += size
}

// confirm handles that the client has confirmed the messages up to a number.
func (a *answerQueue) confirm(number uint64) {
	for len(a.sent) > 0 && a.sent[0].number <= number {
		a.sentBytes -= a.sent[0].size
		a.sent = slices.Delete(a.sent, 0, 1)
	}
}

// drop drops what waits of a question.
func (a *answerQueue) drop(q *servedQuestion) {
	a.waitingBytes -= len(q.value.GetValue())
	q.value, q.end = nil, nil
	a.waiting = slices.DeleteFunc(a.waiting, func(w *servedQuestion) bool { return w == q })
}

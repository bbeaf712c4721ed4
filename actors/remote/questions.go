package remote

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/messages"
)

// question is a question to the server. A goroutine waits for its answers; a newer answer replaces one
// that waits.
type question struct {
	msg *messages.Question

	mu    sync.Mutex
	value []byte           // nil if none waits
	end   *messages.Answer // nil before the end of the answers
	wake  chan struct{}    // has room for one
}

// questionWithdrawn is the message that a question needs no more answers.
type questionWithdrawn struct{ id uint64 }

func (q *question) answered(a *messages.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if isLast(a) {
		q.end = a
	} else {
		q.value = a.Value
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *question) take() (value []byte, end *messages.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	value, q.value = q.value, nil
	return value, q.end
}

// openQuestions are the questions that wait for answers, by id.
type openQuestions map[uint64]*question

func (o openQuestions) answered(a *messages.Answer) {
	q := o[a.GetId()]
	if q == nil {
		return
	}
	q.answered(a)
	if isLast(a) {
		delete(o, a.Id)
	}
}

// problemOfQuestion returns why a question cannot be sent, or "".
func problemOfQuestion(msg *messages.Question) string {
	if problem := problemOfText("path", msg.Path); problem != "" {
		return problem
	}
	if _, err := proto.Marshal(msg); err != nil {
		return err.Error()
	}
	return tooLarge("question", proto.Size(msg), maxAnswer)
}

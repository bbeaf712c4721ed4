package remote

import (
	"context"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// servedRequest is a request of a client. It is the owner that the lock's actor sends messages to,
// which it passes on to the client's actor.
type servedRequest struct {
	client  *servedClient
	number  uint64
	path    string
	recipe  *manager.Recipe
	acquire *messages.Acquire

	id requests.ID // only the lock's actor uses it

	// Only the client's actor uses these.
	entry    *manager.Entry
	granted  bool
	released bool // the client has released
	over     bool // the client needs no answer: it has cancelled, or has the last answer
}

// answered is a message of a lock's actor about a request.
type answered struct {
	request *servedRequest
	message any // of service Owner
	step    uint32
}

// Tell implements ask.Recipient.
func (r *servedRequest) Tell(msg any) {
	if g, is := msg.(*messages.Granted); is {
		r.OnGranted(g, g.Step)
		return
	}
	r.client.self.Tell(answered{request: r, message: msg})
}

// OnGranted implements lock.Acquisition.
func (r *servedRequest) OnGranted(g *messages.Granted, step uint32) {
	r.client.self.Tell(answered{r, g, step})
}

// RequestID implements lock.Acquisition.
func (r *servedRequest) RequestID() *requests.ID { return &r.id }

// Owner implements lock.Acquisition.
func (r *servedRequest) Owner() string { return r.acquire.Owner }

// Context implements lock.Acquisition.
func (r *servedRequest) Context() context.Context { return context.Background() }

// ArmLeakDetection implements lock.Acquisition. The client detects what it has dropped.
func (r *servedRequest) ArmLeakDetection(time.Time) {}

// ---- messages of the client

// onMessage handles a numbered message of the client.
func (c *servedClient) onMessage(m *messages.ClientMessage) {
	switch m := m.GetWhat().(type) {
	case *messages.ClientMessage_Acquire:
		c.acquire(m.Acquire)
	case *messages.ClientMessage_Cancel:
		// The last answer to an unknown request is under way.
		if r := c.requests[m.Cancel.GetRequestId()]; r != nil {
			r.cancel()
		}
	case *messages.ClientMessage_HoldExpired:
		if r := c.requests[m.HoldExpired]; r != nil {
			r.takeBack()
		}
	case *messages.ClientMessage_Release:
		if r := c.requests[m.Release.GetRequestId()]; r != nil && r.granted && !r.over {
			r.released = true
			ask.Send(r.entry.Self, &messages.Release{}, r)
		}
	case *messages.ClientMessage_Question:
		c.question(m.Question)
	case *messages.ClientMessage_Withdraw:
		if cancel := c.questions[m.Withdraw]; cancel != nil {
			cancel()
			delete(c.questions, m.Withdraw)
		}
	}
}

func (c *servedClient) acquire(m *messages.AcquireLock) {
	number := m.GetAcquire().GetRequestId()
	if c.requests[number] != nil {
		c.refuse(number, messages.Reason_INVALID, fmt.Sprintf("request_id %d is used by an open request", number))
		return
	}
	if c.draining {
		return // the client asks the next server, once it has left this one
	}
	if len(c.requests) >= c.server.cfg.MaxRequestsPerClient {
		c.refuse(number, messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that the lock server takes of one client", len(c.requests)))
		return
	}
	recipe, err := recipes.FromSpec(m.GetLock())
	if err != nil {
		c.refuse(number, messages.Reason_INVALID, err.Error())
		return
	}
	path := m.GetPath()
	if recipe.MemberKinds != nil {
		path = recipe.Name
	}
	if err := c.allow(path, recipe, VerbAcquire); err != nil {
		c.refuse(number, messages.Reason_NO_AUTH, err.Error())
		return
	}
	msg := m.Acquire
	kind, err := recipe.KindOf(msg.Kind)
	if err != nil {
		c.refuse(number, messages.Reason_INVALID, err.Error())
		return
	}
	r := &servedRequest{client: c, number: number, path: path, recipe: recipe}
	r.acquire = &messages.Acquire{Owner: c.owner(msg.Owner), Data: msg.Data, Try: msg.Try, Permits: msg.Permits, Kind: uint32(kind),
		NotifyContended: msg.NotifyContended, Revocable: msg.Revocable}
	c.requests[number] = r
	c.begin(r)
}

// begin hands a request to the lock's actor.
func (c *servedClient) begin(r *servedRequest) {
	e, err := c.server.manager.Find(r.path, r.recipe)
	if err != nil {
		reason, detail := reasonOf(err)
		c.onAnswered(answered{request: r, message: &messages.Refused{Reason: reason, Detail: detail}})
		return
	}
	r.entry = e
	ask.Send(e.Self, r.acquire, r)
}

// allow returns why the client may not do that with the lock, or nil.
func (c *servedClient) allow(path string, recipe *manager.Recipe, verb Verb) error {
	allow := c.server.cfg.Allow
	if allow == nil {
		return nil
	}
	if recipe == nil || recipe.MemberKinds == nil {
		return allow(c.peer, path, verb)
	}
	for _, member := range recipe.Deps {
		if err := allow(c.peer, member.Path, verb); err != nil {
			return err
		}
	}
	return nil
}

func (c *servedClient) refuse(number uint64, reason messages.Reason, detail string) {
	c.out.add(&messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: number, Reason: reason, Detail: detail}}})
}

// takeBack is cancel for a client that has not released in time: a lock-delay begins.
func (r *servedRequest) takeBack() {
	r.over = true
	if r.entry != nil {
		r.entry.Self.Tell(lock.TakeBack{From: r})
	}
}

// cancel withdraws a request in whatever state it is. The lock takes a grant back.
func (r *servedRequest) cancel() {
	r.over = true
	if r.entry != nil {
		ask.Send(r.entry.Self, &messages.Cancel{}, r)
	}
}

// ---- messages of the locks

// onAnswered passes a message of a lock on to the client.
func (c *servedClient) onAnswered(a answered) {
	r := a.request
	if c.requests[r.number] != r {
		return
	}
	switch msg := a.message.(type) {
	case *messages.Granted:
		c.onGranted(r, msg, a.step)
	case *messages.Refused:
		if msg.Reason == messages.Reason_STOPPED && !r.granted && !r.over { // the lock's actor was idle
			c.begin(r)
			return
		}
		c.last(r, &messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: r.number, Reason: msg.Reason,
			Detail: msg.Detail, Disconnected: msg.Disconnected}}})
	case *messages.Released:
		c.last(r, &messages.ServerMessage{What: &messages.ServerMessage_Released{Released: &messages.Released{RequestId: r.number, StillHeld: msg.StillHeld}}})
	case *messages.Lost:
		c.last(r, &messages.ServerMessage{What: &messages.ServerMessage_Lost{Lost: &messages.Lost{RequestId: r.number, Reason: msg.Reason, Detail: msg.Detail}}})
		if !r.released {
			ask.Send(r.entry.Self, &messages.Release{}, r) // a named owner would be refused otherwise; the client's lock sees to that
		}
	case *messages.RevokeRequested:
		c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: r.number}}})
	case *messages.Contended:
		c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_Contended{Contended: &messages.Contended{RequestId: r.number}}})
	}
}

func (c *servedClient) onGranted(r *servedRequest, g *messages.Granted, step uint32) {
	r.granted = true
	if r.over {
		return // the Cancel takes it back
	}
	if g.Epoch != c.epoch {
		c.endLease(messages.Reason_SESSION_LOST, "the ZooKeeper session of the lock server is lost")
		return
	}
	// The message may be one that other requests share.
	granted := &messages.Granted{RequestId: r.number, Path: g.Path, Node: g.Node, Czxid: g.Czxid, Step: step, SessionId: g.SessionId, Epoch: g.Epoch,
		Generation: g.Generation, Parts: g.Parts}
	c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: granted}})
	if c.draining {
		c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: r.number}}})
	}
}

// tell sends a message about a request that the client has not cancelled.
func (c *servedClient) tell(r *servedRequest, m *messages.ServerMessage) {
	if !r.over && !c.over {
		c.out.add(m)
	}
}

// last sends the last message about a request.
func (c *servedClient) last(r *servedRequest, m *messages.ServerMessage) {
	c.tell(r, m)
	delete(c.requests, r.number)
}

// ---- questions

// answerTo is an answer to a question of the client, or the end of the answers.
type answerTo struct {
	answer *messages.Answer
	last   bool
}

// maxQuestions bounds the questions of one client that are open.
const maxQuestions = 64

// verbs are what questions do with a lock; others inspect.
var verbs = map[string]Verb{}

// question has a goroutine answer a question of the client.
func (c *servedClient) question(q *messages.Question) {
	id := q.GetId()
	fail := func(reason messages.Reason, detail string) {
		c.out.add(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: id, Reason: reason, Detail: detail}}})
	}
	verb := VerbInspect
	if v, known := verbs[q.GetKind()]; known {
		verb = v
	}
	switch err := c.allow(q.GetPath(), nil, verb); {
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
	c.questions[id] = cancel
	go func() {
		err := answerNone(ctx, c.server.locks, q, func(value []byte) bool {
			c.self.Tell(answerTo{&messages.Answer{Id: id, Value: value}, false})
			return ctx.Err() == nil
		})
		answer := &messages.Answer{Id: id}
		if err != nil {
			answer.Reason, answer.Detail = reasonOf(err)
		}
		c.self.Tell(answerTo{answer, true})
	}()
}

func (c *servedClient) onAnswer(a answerTo) {
	if c.questions[a.answer.Id] == nil || c.over {
		return
	}
	if a.last {
		c.questions[a.answer.Id]()
		delete(c.questions, a.answer.Id)
	}
	c.out.add(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: a.answer}})
}

func answerNone(context.Context, access.Locks, *messages.Question, func([]byte) bool) error {
	return nil
}

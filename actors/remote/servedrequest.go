package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

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
	owner   string // the name that the client has given to the owner
	nodes   int    // that it needs
	acquire *messages.Acquire

	id requests.ID // only the lock's actor uses it

	// Only the client's actor uses these.
	entry    *manager.Entry    // nil while the request waits for a turn
	granted  *messages.Granted // nil before
	released bool              // the client has released
	lost     bool              // the grant is lost, and the client has not confirmed that
	over     bool              // the client needs no answer: it has cancelled, or has the last answer
	turn     uint64            // in which it was begun, or in which it ends
	opening  bool              // it is begun, and neither granted nor about to end
	end      any               // the message by which it ends, while that waits for a turn
	ending   bool              // that is sent, and not answered
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
	r.client.self.RunInlineIfIdle(answered{request: r, message: msg})
}

// OnGranted implements lock.Acquisition.
func (r *servedRequest) OnGranted(g *messages.Granted, step uint32) {
	r.client.self.RunInlineIfIdle(answered{r, g, step})
}

// RequestID implements lock.Acquisition.
func (r *servedRequest) RequestID() *requests.ID { return &r.id }

// Owner implements lock.Acquisition.
func (r *servedRequest) Owner() string { return r.acquire.Owner }

// Context implements lock.Acquisition.
func (r *servedRequest) Context() context.Context { return r.client.ctx }

// IsElsewhere implements lock.Acquisition.
func (r *servedRequest) IsElsewhere() bool { return true }

// ArmLeakDetection implements lock.Acquisition. The client detects what it has dropped.
func (r *servedRequest) ArmLeakDetection(time.Time) {}

// send sends a message to the lock's actor, which handles it in this goroutine if it is idle.
func (r *servedRequest) send(msg any) { r.entry.Self.RunInlineIfIdle(&ask.Call{From: r, Message: msg}) }

// ---- messages of the client

// onMessage handles a numbered message of the client.
func (c *servedClient) onMessage(m *messages.ClientMessage) {
	switch m := m.GetWhat().(type) {
	case *messages.ClientMessage_Acquire:
		c.acquire(m.Acquire)
	case *messages.ClientMessage_Cancel:
		// The last answer to an unknown request is under way.
		if r := c.requests[m.Cancel.GetRequestId()]; r != nil && !c.confirmLost(r) {
			c.cancel(r)
		}
	case *messages.ClientMessage_HoldExpired:
		if r := c.requests[m.HoldExpired]; r != nil && !c.confirmLost(r) {
			c.takeBack(r, messages.Reason_HOLD_EXPIRED)
		}
	case *messages.ClientMessage_Release:
		if r := c.requests[m.Release.GetRequestId()]; r != nil && !c.confirmLost(r) && r.granted != nil && !r.over {
			r.released = true
			c.endInTurn(r, &messages.Release{})
		}
	case *messages.ClientMessage_Question:
		c.question(m.Question)
	case *messages.ClientMessage_Withdraw:
		if q := c.questions[m.Withdraw]; q != nil {
			c.withdraw(q)
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
		if m.GetAcquire().GetTry() {
			c.refuse(number, messages.Reason_DISCONNECTED, closing)
		}
		return // the client asks the next server, once it has left this one
	}
	if problem := problemOf(m); problem != "" {
		c.refuse(number, messages.Reason_INVALID, problem)
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
	if err := c.allowLock(path, recipe); err != nil {
		reason, detail := reasonOf(err)
		c.refuse(number, reason, detail)
		return
	}
	msg := m.Acquire
	kind, err := recipe.KindOf(msg.Kind)
	if err != nil {
		c.refuse(number, messages.Reason_INVALID, err.Error())
		return
	}
	if limit, problem := c.overLimit(nodesOf(recipe, msg), len(msg.Data)); limit != "" {
		c.server.counts.countRefusal(limit)
		c.refuse(number, messages.Reason_LIMIT_EXCEEDED, problem)
		return
	}
	r := &servedRequest{client: c, number: number, path: path, recipe: recipe, owner: msg.Owner, nodes: nodesOf(recipe, msg)}
	r.acquire = &messages.Acquire{Owner: c.owner(msg.Owner), Data: c.nodeData(msg.Data), Try: msg.Try, Permits: msg.Permits, Kind: uint32(kind),
		NotifyContended: msg.NotifyContended, Revocable: msg.Revocable}
	c.requests[number] = r
	c.count(r, 1)
	c.beginInTurn(r)
}

// maxOwner bounds the name of an owner, as a lock does.
const maxOwner = 1 << 10

// owner returns the name that an owner of the client has on the server: owners of other clients are
// others.
func (c *servedClient) owner(name string) string {
	if name == "" {
		return ""
	}
	scoped := fmt.Sprintf("%d/%s", c.number, name)
	if len(scoped) > maxOwner && len(name) <= maxOwner {
		sum := sha256.Sum256([]byte(name))
		scoped = fmt.Sprintf("%d/%s", c.number, hex.EncodeToString(sum[:]))
	}
	return scoped
}

// nodeData returns the data of the client's node: a record has the client's identity. Most requests of
// a client have the same record.
func (c *servedClient) nodeData(data []byte) []byte {
	if c.record.of == nil || !bytes.Equal(c.record.of, data) {
		with := manager.WithIdentity(data, c.peer.Name)
		if len(data) > maxRecord {
			return with
		}
		c.record.of, c.record.with = append([]byte{}, data...), with
	}
	return c.record.with
}

// maxRecord bounds the record that a client keeps.
const maxRecord = 4 << 10

// begin hands a request to the lock's actor.
func (c *servedClient) begin(r *servedRequest) {
	e, err := c.server.manager.FindServed(r.path, r.recipe)
	if err != nil {
		reason, detail := reasonOf(err)
		c.last(r, refusedMessage(r.number, reason, detail))
		return
	}
	r.entry = e
	r.send(r.acquire)
}

// allow returns why the client may not do that with one of the locks, as NO_AUTH, or nil. Any
// goroutine may call it.
func (c *servedClient) allow(verb Verb, paths ...string) error {
	if c.server.cfg.Allow == nil {
		return nil
	}
	for _, path := range paths {
		if err := c.server.cfg.Allow(c.peer, path, verb); err != nil {
			return &messages.Refused{Reason: messages.Reason_NO_AUTH, Detail: err.Error()}
		}
	}
	return nil
}

// allowLock returns why the client may not acquire the lock, or nil.
func (c *servedClient) allowLock(path string, recipe *manager.Recipe) error {
	if c.server.cfg.Allow == nil {
		return nil // the lock's actor checks the path
	}
	paths, err := recipes.PathsOf(path, recipe)
	if err != nil {
		return err
	}
	return c.allow(VerbAcquire, paths...)
}

func (c *servedClient) refuse(number uint64, reason messages.Reason, detail string) {
	c.send(refusedMessage(number, reason, detail))
}

func refusedMessage(number uint64, reason messages.Reason, detail string) *messages.ServerMessage {
	return &messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: number, Reason: reason, Detail: detail}}}
}

// takeBack is cancel for a client that has not released in time: a lock-delay begins. why is why it lost a
// grant.
func (c *servedClient) takeBack(r *servedRequest, why messages.Reason) {
	c.withdrawRequest(r, lock.TakeBack{From: r, Why: why})
}

// cancel withdraws a request in whatever state it is. The lock takes a grant back.
func (c *servedClient) cancel(r *servedRequest) { c.withdrawRequest(r, &messages.Cancel{}) }

func (c *servedClient) withdrawRequest(r *servedRequest, end any) {
	r.over = true
	if r.entry == nil {
		c.endDeferred(r)
		return
	}
	c.endInTurn(r, end)
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
		if msg.Reason == messages.Reason_STOPPED && r.granted == nil && !r.over { // the lock's actor was idle
			c.begin(r)
			return
		}
		c.last(r, &messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: r.number, Reason: msg.Reason,
			Detail: r.detail(msg.Detail), Disconnected: msg.Disconnected}}})
	case *messages.Released:
		c.last(r, &messages.ServerMessage{What: &messages.ServerMessage_Released{Released: &messages.Released{RequestId: r.number, StillHeld: msg.StillHeld}}})
	case *messages.Lost:
		c.onLost(r, msg)
	case *messages.RevokeRequested:
		c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: r.number}}})
	case *messages.Contended:
		c.tell(r, &messages.ServerMessage{What: &messages.ServerMessage_Contended{Contended: &messages.Contended{RequestId: r.number}}})
	}
}

// onLost tells the client that a grant is lost. The lock may hold other nodes of the grant until the
// client has confirmed that, by its Release. A client that has released or cancelled before, or
// whose lease is over, does not use the grant any more.
func (c *servedClient) onLost(r *servedRequest, msg *messages.Lost) {
	lost := &messages.ServerMessage{What: &messages.ServerMessage_Lost{Lost: &messages.Lost{RequestId: r.number, Reason: msg.Reason, Detail: r.detail(msg.Detail)}}}
	if r.over || r.released {
		if r.end != nil { // the lock waits for that
			c.end(r, r.end)
		}
		c.last(r, lost)
		return
	}
	c.tell(r, lost)
	r.granted, r.lost = nil, true
}

// confirmLost is called when the client has released or cancelled, or its lease is over. It ends a
// request whose grant is lost, and returns false for others.
func (c *servedClient) confirmLost(r *servedRequest) bool {
	if r.lost {
		r.over = true
		c.last(r, nil)
		r.send(&messages.Release{})
	}
	return r.lost
}

// detail returns a detail with the name of the owner that the client knows.
func (r *servedRequest) detail(d string) string {
	if r.owner == "" {
		return d
	}
	return strings.ReplaceAll(d, strconv.Quote(r.acquire.Owner), strconv.Quote(r.owner))
}

func (c *servedClient) onGranted(r *servedRequest, g *messages.Granted, step uint32) {
	r.granted = g
	c.noteOpened(r)
	if r.over {
		return // the Cancel takes it back
	}
	if c.epoch == 0 { // the client has not renewed its lease yet
		c.epoch = g.Epoch
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
		c.send(m)
	}
}

// last sends the last message about a request.
func (c *servedClient) last(r *servedRequest, m *messages.ServerMessage) {
	c.tell(r, m)
	delete(c.requests, r.number)
	c.noteEnded(r)
	c.count(r, -1)
}

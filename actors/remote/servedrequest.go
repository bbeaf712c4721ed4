package remote

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Tell implements ask.Recipient.
func (r *servedRequest) Tell(msg any) {
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

// detail returns a detail with the name of the owner that the client knows.
func (r *servedRequest) detail(d string) string {
	if r.owner == "" {
		return d
	}
	return strings.ReplaceAll(d, strconv.Quote(r.acquire.Owner), strconv.Quote(r.owner))
}

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

// last sends the last message about a request, which may be nil for a request that is over.
func (c *servedClient) last(r *servedRequest, m *messages.ServerMessage) {
	if r.awaits && !c.over {
		c.send(cmp.Or(m, refusedMessage(r.number, messages.Reason_CANCELLED, r.path)))
	} else {
		c.tell(r, m)
	}
	delete(c.requests, r.number)
	c.noteEnded(r)
	c.count(r, -1)
}

// count counts what a request costs, once more or once less, for the client and for all of its peer.
func (c *servedClient) count(r *servedRequest, times int) {
	nodes, data := times*r.nodes, times*r.nodes*len(r.acquire.Data)
	c.nodes, c.data = c.nodes+nodes, c.data+data
	c.group.nodes.Add(int64(nodes))
	c.group.data.Add(int64(data))
}

// noteOpened notes that a request is granted, or is to end.
func (c *servedClient) noteOpened(r *servedRequest) {
	if r.opening && r.turn == c.deferred.turns {
		c.deferred.opening -= r.nodes
	}
	r.opening = false
}

// noteEnded notes that a request has ended.
func (c *servedClient) noteEnded(r *servedRequest) {
	c.noteOpened(r)
	if r.ending && r.turn == c.deferred.turns {
		c.deferred.ending -= r.nodes
	}
	r.end, r.ending = nil, false
}

package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/messages"
)

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
	if recipe.Members != nil {
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

// A client has limits: for each request, and for all of its open requests.

// nodesOf returns how many nodes a request needs: one for each permit, and one in the request queue of
// each semaphore.
func nodesOf(r *manager.Recipe, msg *messages.Acquire) (n int) {
	if r.Members == nil {
		return len(r.Directories)/2 + int(max(msg.Permits, 1))
	}
	for _, member := range r.Members {
		n += len(member.Recipe.Directories)/2 + 1
	}
	return n
}

// overLimit returns the limit that the client, or all of its peer, exceed by a request of so many nodes,
// with so many bytes of data in each, and a text about it. It returns "" if the request exceeds none.
func (c *servedClient) overLimit(nodes, data int) (Limit, string) {
	bytes := nodes * data
	for _, l := range []struct {
		limit     Limit
		what      string
		one, peer int // with the request
		most      int // of one client
	}{
		{LimitRequests, "need %d nodes", c.nodes + nodes, int(c.group.nodes.Load()) + nodes, c.server.cfg.MaxRequestsPerClient},
		{LimitData, "have %d bytes of data", c.data + bytes, int(c.group.data.Load()) + bytes, c.server.cfg.MaxDataPerClient},
	} {
		switch few := l.most / fewRequestsPart; {
		case l.one > l.most:
			return l.limit, fmt.Sprintf("the open requests "+l.what+" with this one: the lock server takes %d at most of one client", l.one, l.most)
		case (l.peer-1)/maxGroupRequests >= l.most && l.one > few:
			return l.limit, fmt.Sprintf("the open requests of all clients of this peer "+l.what+" with this one: the lock server takes %d of one peer, and beyond that %d at most of each client",
				l.peer, maxGroupRequests*l.most, few)
		}
	}
	return "", ""
}

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

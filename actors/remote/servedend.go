package remote

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The end of a lease: by the client, the server, the session or the clock.

func (c *servedClient) drain() {
	if c.over || c.draining {
		return
	}
	c.draining = true
	if c.stream != nil {
		c.stream.frames.put(&messages.ServerFrame{GoAway: true})
	}
	for _, number := range slices.Sorted(maps.Keys(c.requests)) { // in one order, so that a simulation repeats
		if c.requests[number].granted != nil {
			c.send(&messages.ServerMessage{What: &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: number}}})
		}
	}
}

// closeDown asks the client to end its lease. The server gives back what the client has when the client has answered,
// or when the lease is not valid any more.
func (c *servedClient) closeDown() {
	if c.over {
		return
	}
	c.draining = true
	c.lease.Drain()
	if !c.lease.Believed(c.now()) {
		c.endLease(messages.Reason_CLOSED, closing)
	} else if c.stream != nil {
		c.stream.frames.put(&messages.ServerFrame{Ended: &messages.Ended{Reason: messages.Reason_CLOSED, Detail: closing}})
	}
}

// endLease gives back all that the client has. The caller knows that the client's lease is not valid any more,
// or that the ZooKeeper session is lost: the bridge keeps a lost session for as long as the client's lease.
func (c *servedClient) endLease(reason messages.Reason, detail string) {
	if c.over {
		return
	}
	c.over = true
	held := 0
	for _, number := range slices.Sorted(maps.Keys(c.requests)) {
		r := c.requests[number]
		if r.granted != nil {
			held++
		}
		if !c.confirmLost(r) {
			c.takeBack(r, cmp.Or(reason, messages.Reason_CLOSED)) // without a reason the client has closed its locks
		}
	}
	for id, q := range c.questions {
		q.cancel()
		delete(c.questions, id)
	}
	if c.stream != nil && reason != 0 {
		c.stream.frames.put(&messages.ServerFrame{Ended: &messages.Ended{Reason: reason, Detail: readable(detail)}})
	}
	if held > 0 && reason != 0 {
		c.server.counts.leasesLost.Add(1)
		log := c.server.warn
		if c.server.manager.Session.Session().State != messages.SessionState_CONNECTED {
			log = c.server.log.Debug // the line about the session says how many hold: one for each client would hide it
		}
		log("lease of a client has ended, and with it the client's locks", "client", c.text(), "held", held, "waiting", len(c.requests)-held,
			"why", detail, "do", "look at the client and the network to it")
	}
}

// stopIfDone ends the actor of a lease that has ended, once the locks have answered all requests and
// the lease is not valid at the client any more. A client that has said Bye learns by the end of its
// stream that all is given back.
func (c *servedClient) stopIfDone() {
	if !c.over || len(c.requests) > 0 || c.lease.Believed(c.now()) {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.stream != nil {
		c.stream.close()
		c.stream = nil
	}
	c.countPending(0, 0)
	c.server.ended(c)
	c.stopped = true
	c.self.Stop()
}

// Stopped implements host.Actor.
func (c *servedClient) Stopped(failure any) {
	if failure == nil {
		return
	}
	c.over = true
	c.countPending(0, 0)
	if c.stream != nil {
		c.stream.end(messages.Reason_INTERNAL, "the lock server has failed: see its log")
	}
	for _, q := range c.questions {
		q.cancel()
	}
	time.AfterFunc(max(c.lease.Count()-c.now(), 0), func() { // the lease may be valid at the client until then
		for _, r := range c.requests {
			if r.entry != nil {
				r.entry.Self.Tell(lock.TakeBack{From: r, Why: messages.Reason_INTERNAL}) // the actor has no turns any more
			}
			c.count(r, -1)
		}
		c.server.ended(c)
	})
}

// Refuse implements host.Actor.
func (c *servedClient) Refuse(_ ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case attached:
		msg.stream.end(messages.Reason_SESSION_LOST, "the lease is over")
	case frameReceived:
		<-msg.stream.room
	case halfClosed:
		msg.stream.close()
	case describe:
		msg.to <- ClientState{}
	}
}

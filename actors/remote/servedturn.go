package remote

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/messages"
)

// A client that asks for thousands of locks, or permits, at one moment has the server ask for them in
// parts, which it does in turn with other such clients: so they do not stand in front of what a client
// with few requests asks for. The same goes for what ends thousands of requests: releases, cancels and the
// end of a lease. Renewals wait for no turn.
//
// What ends goes before what begins, so that a request never comes before the release that its client has
// sent ahead of it.

// maxOpening is how many nodes a client has the server ask for without a turn, and in one: those of the
// requests that were begun since the last turn and wait for their locks. A request that needs more has a
// turn for itself. As many nodes of requests may end without a turn, and in one.
const maxOpening = 256

// beginInTurn begins a request, or has it wait for a turn.
func (c *servedClient) beginInTurn(r *servedRequest) {
	d := &c.deferred
	if len(d.ends) == 0 && len(d.requests) == 0 && d.opening+r.nodes <= maxOpening {
		c.open(r)
		return
	}
	d.requests = append(d.requests, r)
	c.awaitTurn()
}

// endInTurn sends the lock's actor the message by which a request ends, or has it wait for a turn. A
// request that ends already, and waits, needs no second one.
func (c *servedClient) endInTurn(r *servedRequest, end any) {
	d := &c.deferred
	switch {
	case r.end != nil:
	case r.ending || len(d.ends) == 0 && d.ending+r.nodes <= maxOpening:
		c.end(r, end)
	default:
		r.end = end
		d.ends = append(d.ends, r)
		c.awaitTurn()
	}
}

// end sends the lock's actor the message by which a request ends.
func (c *servedClient) end(r *servedRequest, end any) {
	c.noteOpened(r)
	if r.end = nil; !r.ending {
		r.turn, r.ending = c.deferred.turns, true
		c.deferred.ending += r.nodes
	}
	if back, is := end.(lock.TakeBack); is {
		r.entry.Self.Tell(back)
		return
	}
	r.send(end)
}

// awaitTurn has the actor get a turn if requests wait for one.
func (c *servedClient) awaitTurn() {
	d := &c.deferred
	if d.turn > 0 {
		return
	}
	if d.turn = nodesOfTurn(0, d.ends); d.turn < maxOpening {
		d.turn = nodesOfTurn(d.turn, d.requests)
	}
	if d.turn > 0 {
		c.server.manager.Bridge.AwaitRoom(d.turn, func() { c.self.Tell(turn{}) })
	}
}

// nodesOfTurn returns how many nodes a turn is for that has so many, and those of the first of the
// requests.
func nodesOfTurn(n int, requests []*servedRequest) int {
	for _, r := range requests {
		if n > 0 && n+r.nodes > maxOpening {
			break
		}
		n += r.nodes
	}
	return n
}

// onTurn ends and begins requests that have waited for the turn.
func (c *servedClient) onTurn() {
	d := &c.deferred
	left := d.turn
	d.turn, d.opening, d.ending = 0, 0, 0
	d.turns++
	for len(d.ends) > 0 && (d.ends[0].end == nil || d.ends[0].nodes <= left) {
		r := d.ends[0]
		d.ends[0] = nil
		if d.ends = d.ends[1:]; r.end != nil { // otherwise it has ended meanwhile
			left -= r.nodes
			c.end(r, r.end)
		}
	}
	for len(d.ends) == 0 && len(d.requests) > 0 && (d.requests[0].over || d.requests[0].nodes <= left) {
		r := d.requests[0]
		d.requests[0] = nil
		if d.requests = d.requests[1:]; r.over {
			d.cancelled--
			continue
		}
		left -= r.nodes
		c.open(r)
	}
	c.awaitTurn()
}

// open begins a request, which counts for the opening ones of the present turn.
func (c *servedClient) open(r *servedRequest) {
	r.turn, r.opening = c.deferred.turns, true
	c.deferred.opening += r.nodes
	c.begin(r)
}

// endDeferred ends a request that waits for a turn, because the client needs it no more.
func (c *servedClient) endDeferred(r *servedRequest) {
	c.last(r, nil)
	d := &c.deferred
	if d.cancelled++; 2*d.cancelled > len(d.requests) { // so that a client cannot have many
		d.requests = slices.DeleteFunc(d.requests, func(r *servedRequest) bool { return r.over })
		d.cancelled = 0
	}
}

func (c *servedClient) withdrawRequest(r *servedRequest, end any) {
	r.over = true
	if r.entry == nil {
		c.endDeferred(r)
		return
	}
	c.endInTurn(r, end)
}

// cancel withdraws a request in whatever state it is. The lock takes a grant back.
// await is that the client waits until the node is gone.
func (c *servedClient) cancel(r *servedRequest, await bool) {
	r.awaits = r.awaits || await
	c.withdrawRequest(r, &messages.Cancel{AwaitNode: await})
}

// takeBack is cancel for a client that has not released in time: a lock-delay begins. why is why it lost a
// grant.
func (c *servedClient) takeBack(r *servedRequest, why messages.Reason) {
	c.withdrawRequest(r, lock.TakeBack{From: r, Why: why})
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

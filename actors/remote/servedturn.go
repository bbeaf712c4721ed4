package remote

import "slices"

// A client that asks for thousands of locks, or permits, at one moment has the server ask for them in
// parts, which it does in turn with other such clients: so they do not stand in front of what a client
// with few requests asks for. What a client renews, cancels or releases waits for no turn.

// maxOpening is how many nodes a client has the server ask for without a turn, and in one: those of the
// requests that were begun since the last turn and wait for their locks. A request that needs more has a
// turn for itself.
const maxOpening = 256

// deferred are the requests of a client that wait for a turn, in their order. The zero value has none.
type deferred struct {
	requests  []*servedRequest
	cancelled int    // of these
	turn      int    // nodes that the client has asked for a turn for; 0 if it waits for none
	turns     uint64 // so far
	opening   int    // see maxOpening
}

// turn is the message to the actor that it is the client's turn.
type turn struct{}

// beginInTurn begins a request, or has it wait for a turn.
func (c *servedClient) beginInTurn(r *servedRequest) {
	if len(c.deferred.requests) == 0 && c.deferred.opening+r.nodes <= maxOpening {
		c.open(r)
		return
	}
	c.deferred.requests = append(c.deferred.requests, r)
	c.awaitTurn()
}

// awaitTurn has the actor get a turn if requests wait for one.
func (c *servedClient) awaitTurn() {
	d := &c.deferred
	if d.turn > 0 {
		return
	}
	for _, r := range d.requests {
		if d.turn > 0 && d.turn+r.nodes > maxOpening {
			break
		}
		d.turn += r.nodes
	}
	if d.turn > 0 {
		c.server.manager.Bridge.AwaitRoom(d.turn, func() { c.self.Tell(turn{}) })
	}
}

// onTurn begins requests that have waited for the turn.
func (c *servedClient) onTurn() {
	d := &c.deferred
	left := d.turn
	d.turn, d.opening = 0, 0
	d.turns++
	for len(d.requests) > 0 && (d.requests[0].over || d.requests[0].nodes <= left) {
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

// noteOpened notes that a request is granted or has ended.
func (c *servedClient) noteOpened(r *servedRequest) {
	if r.opening && r.turn == c.deferred.turns {
		c.deferred.opening -= r.nodes
	}
	r.opening = false
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

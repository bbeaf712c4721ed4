package remote

import (
	"testing"

	"github.com/actorlock/actorlock/messages"
)

// Requests that were cancelled before their turn do not stay: at most as many as wait for it.
func TestCancelledBeforeTheirTurn(t *testing.T) {
	const waiting, cancelled = 3, 1000
	c := &servedClient{requests: map[uint64]*servedRequest{}, group: &peerGroup{}}
	c.deferred.turn = 1 // the client waits for its turn
	add := func(number uint64) *servedRequest {
		r := &servedRequest{client: c, number: number, nodes: 1, acquire: &messages.Acquire{}}
		c.requests[number] = r
		c.count(r, 1)
		c.deferred.requests = append(c.deferred.requests, r)
		return r
	}
	for i := range waiting {
		add(uint64(i))
	}
	for i := range cancelled {
		c.cancel(add(uint64(waiting+i)), false)
		if n := len(c.deferred.requests); n > 2*waiting {
			t.Fatalf("%d requests are kept after %d cancels: %d wait", n, i+1, waiting)
		}
	}
	if c.nodes != waiting || len(c.requests) != waiting {
		t.Errorf("%d nodes and %d requests are counted of %d", c.nodes, len(c.requests), waiting)
	}
	for i, r := range c.deferred.requests {
		if i < waiting && r.number != uint64(i) {
			t.Errorf("place %d has request %d", i, r.number)
		}
	}
}

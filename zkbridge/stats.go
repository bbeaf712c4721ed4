package zkbridge

import (
	"sync/atomic"

	"github.com/actorlock/actorlock/messages"
)

// Stats counts what a bridge has done since Open.
type Stats struct {
	// Batches counts the transactions that created and deleted nodes of contenders, and
	// BatchOperations their creates and deletes. A batch that had to be sent again counts again.
	Batches, BatchOperations uint64
	// Suspensions counts how often the connection of a session was lost, and SessionsLost the
	// sessions that were lost.
	Suspensions, SessionsLost uint64
}

// counters are the Stats as the actor counts them.
type counters struct {
	batches, batchOperations, suspensions, sessionsLost atomic.Uint64
	onBatch                                             atomic.Pointer[func(operations int)]
}

// countBatch counts a batch that is sent.
func (c *counters) countBatch(operations int) {
	c.batches.Add(1)
	c.batchOperations.Add(uint64(operations))
	if f := c.onBatch.Load(); f != nil && *f != nil {
		(*f)(operations)
	}
}

// countState counts a new state of the session.
func (c *counters) countState(s Session) {
	switch {
	case s.Epoch == 0: // there was no session yet
	case s.State == messages.SessionState_SUSPENDED:
		c.suspensions.Add(1)
	case s.State == messages.SessionState_LOST:
		c.sessionsLost.Add(1)
	}
}

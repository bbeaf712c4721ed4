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

// Stats returns the present counts. It never blocks.
func (b *Bridge) Stats() Stats {
	c := &b.counters
	return Stats{Batches: c.batches.Load(), BatchOperations: c.batchOperations.Load(), Suspensions: c.suspensions.Load(),
		SessionsLost: c.sessionsLost.Load()}
}

// OnBatch has f called with the number of operations of each batch that is sent from now on; nil
// ends that. The bridge's actor calls f, which must not block.
func (b *Bridge) OnBatch(f func(operations int)) {
	b.counters.onBatch.Store(&f)
}

// countBatch counts a batch that is sent.
func (b *Bridge) countBatch(operations int) {
	b.counters.batches.Add(1)
	b.counters.batchOperations.Add(uint64(operations))
	if f := b.counters.onBatch.Load(); f != nil && *f != nil {
		(*f)(operations)
	}
}

// countState counts a new state of the session.
func (b *Bridge) countState(s Session) {
	switch {
	case s.Epoch == 0: // there was no session yet
	case s.State == messages.SessionState_SUSPENDED:
		b.counters.suspensions.Add(1)
	case s.State == messages.SessionState_LOST:
		b.counters.sessionsLost.Add(1)
	}
}

package remote_test

import (
	"context"
	"testing"
	"time"
)

// A client that does nothing else confirms the answers to a question at once: it hears of changes one
// after the other, without a renewal between them.
func TestObserverConfirmsAnswers(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		c, others := w.dialAs("client", 0), w.dialAs("others", 0)
		observing, end := context.WithCancel(w.Context())
		defer end()
		queues := c.locks.Observe(observing, "/queue")
		<-queues
		for range 4 {
			grant := w.mustLock(others, "/queue")
			locked := time.Now()
			for q := range queues {
				if len(q.Participants) == 1 && q.Participants[0].Token == grant.Token() {
					break
				}
			}
			if took := time.Since(locked); took > time.Second+leaseTime/20 { // a second passes until a missing directory is read again
				t.Errorf("a change was seen after %v", took)
			}
			grant.Release()
			<-time.After(time.Millisecond)
		}
	})
}

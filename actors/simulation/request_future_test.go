package simulation

import (
	"fmt"
	"time"
)

// acquireByFuture makes the request of an entry by protoactor's RequestFuture. A request whose
// future times out may be granted later, and can never be released.
func (sim *simulation) acquireByFuture(e entry) {
	a, msg := sim.newActorRequest(e)
	if a == nil {
		return
	}
	a.name = fmt.Sprint("future ", a.id)
	msg.Owner = a.name
	timeout := time.Duration(1 + a.rand.Int64N(int64(200*time.Millisecond)))
	sim.record("future %d of %s asks for %s: timeout %v", a.id, a.p.name, describeUses(a.uses), timeout)
	sim.actorRequests = append(sim.actorRequests, a)
	sim.usesFutures = true
	a.sendByFuture(msg, timeout)
}

// sendByFuture sends a message by a future, and puts the answer into the inbox. It sets pid to the
// PID of the future.
func (a *actorRequest) sendByFuture(msg any, timeout time.Duration) {
	future := a.p.system.Root.RequestFuture(a.lock, msg, timeout)
	a.pid = future.PID()
	go func() {
		answer, err := future.Result()
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil {
			answer = err
		}
		a.inbox = append(a.inbox, answer)
	}()
}

// futureEnded handles the time-out of a future, or the error of a closed lock.
func (a *actorRequest) futureEnded(err error) {
	a.sim.record("future %d ends: %v", a.id, err)
	a.finish()
}

package zkbridge

import (
	"context"
	"errors"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
)

// Outage returns since when ZooKeeper has not answered, and why: since the connection was lost, or,
// while the bridge is CONNECTED, since the oldest request was sent that has had no answer for half
// a second or longer. why is nil if neither is so, and once the bridge is closed. It never blocks.
func (b *internals) Outage() (since time.Time, why error) { return b.outage() }

// OutageText returns Outage as a text for people, "" if ZooKeeper answers. It never blocks.
func (b *internals) OutageText() string { return b.outageText() }

// Explain returns the error of a wait that has ended. If ZooKeeper does not answer, the error is
// also DISCONNECTED, and its text says since when and why. It never blocks.
func (b *internals) Explain(err error) error { return ExplainBy(b.OutageText(), err) }

// FailFast returns the same bridge, whose blocking calls do not wait for a connection if on is
// true: a call fails when the session becomes SUSPENDED, and at once while it is. The error is
// [messages.Reason_DISCONNECTED], or OUTCOME_UNKNOWN if a transaction was sent. The error of a call
// that ends with ctx or with the session then has what Explain adds. The calls of the bridge that
// Open returns wait. FailFast never blocks.
func (b *internals) FailFast(on bool) *internals { return &internals{b.Bridge, on} }

// explained returns the error of a call, by Explain if the call may have ended because ZooKeeper
// does not answer.
func (b *internals) explained(ctx context.Context, err error) error {
	if err == nil || !b.failFast {
		return err
	}
	if ctx.Err() != nil || errors.Is(err, messages.Reason_SESSION_LOST) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		return b.Explain(err)
	}
	return err
}

// callIn returns what a request of a goroutine has that is for an epoch.
func (b *internals) callIn(epoch uint64) requests.Call {
	return requests.Call{Epoch: epoch, FailFast: b.failFast}
}

// withdraw drops a request whose caller has stopped waiting.
func (b *internals) withdraw(r reply.Request) {
	b.ref.Tell(task(func(a *bridgeActor) {
		if a.epoch != nil {
			a.epoch.Close(r)
		}
	}))
}

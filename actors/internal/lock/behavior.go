package lock

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Behavior is the part of a lock's actor that its recipe decides. The [Actor] calls its methods
// one at a time.
type Behavior interface {
	// Acquire begins a request that the Actor has accepted.
	Acquire(r *Request, msg *messages.Acquire)
	// Cancel withdraws a request, for the reason. It takes a grant back, too.
	Cancel(r *Request, reason messages.Reason)
	// Release takes a grant back.
	Release(r *Request)
	// ReceiveOther handles any message that is not of service Lock, and reports whether it knows
	// the message.
	ReceiveOther(from ask.Recipient, msg any) bool
	// Idle reports that the actor holds nothing on ZooKeeper or of its dependencies, and waits
	// for nothing. The Actor itself checks for open requests.
	Idle() bool
	// Tick is called at each tick. quiet reports that the actor is idle and was not
	// used since the last tick.
	Tick(quiet bool)
	// Epoch returns the epoch of the session that the actor's grants live in; 0 for none.
	Epoch() uint64
	// SessionOverdue ends the grants of Epoch, which must be taken for lost. The bridge has not
	// reported that yet.
	SessionOverdue()
	// Close releases all that the actor holds on ZooKeeper and of its dependencies, and ends all
	// requests that are still open with CLOSED. If failed, the actor's state cannot be relied on,
	// and the Actor has ended all requests before. Owners elsewhere have heard of that by then.
	Close(failed bool)
	// ReceiveAfterStop handles a message that came after Close and is not of service Lock.
	ReceiveAfterStop(from ask.Recipient, msg any)
}

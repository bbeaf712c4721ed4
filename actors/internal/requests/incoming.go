package requests

import "github.com/actorlock/actorlock/actors/queue"

// Incoming is a request as a state machine takes it in.
type Incoming struct {
	ID ID
	// Owner names the owner; "" is an owner of this request alone.
	Owner string
	Kind  queue.Kind
	// Permits is how many permits of a semaphore are wanted, 1 or more. MultiLock marks the request
	// of a multi-lock: see semaphore.State.Proceed.
	Permits   int
	MultiLock bool
	// Try refuses the request rather than let it wait.
	Try bool
	// NotifyContended asks for one NotifyContended while the request holds the lock.
	NotifyContended bool
	// Revocable has the holder notified at once when another client asks it to release.
	Revocable bool
	// Data is the data of a node that is made for the request.
	Data []byte
}

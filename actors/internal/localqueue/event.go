package localqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Event is something that happened to a Queue. The types of this file are events. First come
// those of the requests' owners, then those of the lock below.
type Event interface {
	apply(*Queue)
}

// Acquire is a new request of a local owner.
type Acquire struct {
	ID requests.ID
	// Owner names the owner. The owner's request enters again where the rule lets it.
	Owner string
	Kind  queue.Kind
	// Try refuses the request rather than let it wait.
	Try bool
	// NotifyContended asks for one NotifyContended while the request holds the lock.
	NotifyContended bool
	// Data is the data of a node that is acquired for the request.
	Data []byte
}

// Cancel withdraws a request, for the Reason. It releases a grant, too.
type Cancel struct {
	ID     requests.ID
	Reason requests.Reason
}

// Release releases a grant.
type Release struct{ ID requests.ID }

// Close refuses all requests, ends all grants and releases the node hold.
type Close struct{ Reason requests.Reason }

// NodeGranted answers AcquireNode: the lock is held by a node, with the token Generation, Czxid
// and Step.
type NodeGranted struct {
	Serial     uint64
	Generation uint64
	Czxid      int64
	Step       uint32
}

// NodeRefused answers AcquireNode: the lock below has refused the request.
type NodeRefused struct {
	Serial uint64
	Reason requests.Reason
}

// NodeLost reports that a granted node is lost.
type NodeLost struct {
	Serial uint64
	Reason requests.Reason
}

// NodeContended reports that contenders of other processes wait for the node.
type NodeContended struct{ Serial uint64 }

// TimeBudgetUsed reports that the node hold that began with the node Serial has lasted as long
// as it may while others wait.
type TimeBudgetUsed struct{ Serial uint64 }

// IdleTimedOut answers StartIdleTimer.
type IdleTimedOut struct{}

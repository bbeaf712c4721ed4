package localqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// QueueActor performs what a Queue asks for: the first two methods on the lock below, the last two
// for the owners.
type QueueActor interface {
	// AcquireNode acquires the lock below for a kind, as a try or not, as the owner of the other
	// node that is held. The Queue's NodeGranted or NodeRefused must be called, later NodeLost,
	// NodeContended and NodeRevoked.
	AcquireNode(serial uint64, kind queue.Kind, try bool, data []byte)
	// ReleaseNode releases a node, also if it is lost, or withdraws the request. No answer is
	// awaited.
	ReleaseNode(serial uint64)
	// StartIdleTimer: the Queue's IdleTimedOut must be called when the node hold may have been
	// unused for long.
	StartIdleTimer()
	// GrantBy: the request holds the lock by the node, with the token.
	GrantBy(id requests.ID, serial uint64, token requests.Token)
	requests.Owners
}

package actors

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The errors of futures and grants; test for them with errors.Is. They are the Reasons of
// lock.proto, which actors get in messages. A request that ends with its context has the cause
// of the context as its error instead.
var (
	// ErrNotAcquired: the lock is not free, and the request was made with Try.
	ErrNotAcquired error = messages.Reason_NOT_ACQUIRED
	// ErrTimedOut: the wait set by WithTimeout is over.
	ErrTimedOut error = messages.Reason_TIMED_OUT
	// ErrCancelled: Cancel was called on the future.
	ErrCancelled = ask.ErrCancelled
	// ErrSessionLost: the ZooKeeper session ended, or must be taken for ended. With a lock server
	// that is so as well when the lease has lapsed.
	ErrSessionLost error = messages.Reason_SESSION_LOST
	// ErrSuspended: there is no connection to ZooKeeper or to the lock server, or ZooKeeper does not
	// answer. It soon ends a request with Try and a call that asks ZooKeeper; the text says since
	// when and why. The error of a request whose wait or context has ended is also ErrSuspended if
	// ZooKeeper had not answered for half a second or longer: otherwise another contender kept the
	// request waiting. It is the cause of grants' contexts if Config.StopOnSuspended is set.
	ErrSuspended error = messages.Reason_DISCONNECTED
	// ErrNodeDeleted: another client deleted the holder's node. (The server deletes the nodes of an
	// expired session; sometimes the deletion is heard of before the expiry.) A request that waits
	// queues again, at the end, when its process hears that its node was deleted. A grant that
	// comes before that news ends with ErrNodeDeleted when the news comes, within about two
	// seconds.
	ErrNodeDeleted error = messages.Reason_NODE_DELETED
	// ErrClosed: Locks was closed.
	ErrClosed error = messages.Reason_CLOSED
	// ErrHoldExpired: the grant was held for as long as HoldAtMost allows.
	ErrHoldExpired error = messages.Reason_HOLD_EXPIRED
	// ErrDraining: Drain was called, which refuses new requests and those that wait.
	ErrDraining error = messages.Reason_DRAINING
	// ErrNotHeld: the grant was released before, or lost.
	ErrNotHeld error = messages.Reason_NOT_HELD
	// ErrInvalid: an argument is not acceptable; the text says which argument and why.
	ErrInvalid error = messages.Reason_INVALID
	// ErrNoAuth: ZooKeeper denies a right on the lock's directory.
	ErrNoAuth error = messages.Reason_NO_AUTH
	// ErrUnavailable: ZooKeeper answers with an error that repeating would not change.
	ErrUnavailable error = messages.Reason_UNAVAILABLE
	// ErrSequenceExhausted: the sequence numbers of the lock's directory are used up. Near their
	// end, at 2^31, requests wait until the directory is empty and can be deleted, so that the
	// numbers begin anew. They fail if nothing leaves the directory for some seconds: a holder
	// keeps the lock, clients of other libraries go on to ask for it, the directory has another
	// child, or a right is missing to delete it. Remove the cause, and request the lock again.
	ErrSequenceExhausted error = messages.Reason_SEQUENCE_EXHAUSTED
	// ErrNoDirectory: the lock's directory does not exist, and the handle has RequireDirectory.
	ErrNoDirectory error = messages.Reason_NO_DIRECTORY
	// ErrLimit: more requests are open than Config allows.
	ErrLimit error = messages.Reason_LIMIT_EXCEEDED
	// ErrDeadlock: the request could only be granted after its own owner has released what it
	// holds or waits for. A read lock does not become a write lock, and a lock that is not
	// re-entrant is not entered twice. An owner cannot acquire a MultiLock after it has asked for
	// some of the members by other requests.
	ErrDeadlock error = messages.Reason_WOULD_DEADLOCK
	// ErrInternal: the lock actor failed. Its nodes are released.
	ErrInternal error = messages.Reason_INTERNAL
)

package writer

import (
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Epoch is what a writer needs of the epoch that it writes in. Its methods do not block. All but
// Post must be called in the bridge's actor.
type Epoch interface {
	// Client returns the client that sends requests over the present connection.
	Client() zkconn.Client

	// IsOpen reports whether the request has not been answered.
	IsOpen(r reply.Request) bool
	// Answer answers a request by a message.
	Answer(r reply.Sender, msg any)
	// Fail answers that the bridge will not do what was requested.
	Fail(r reply.Request, why messages.Reason, format string, args ...any)

	// Run calls work, which may block, on another goroutine while the session is CONNECTED. It
	// then calls the function that work has returned in the actor, unless the epoch is over.
	Run(work func(client zkconn.Client) (then func()))
	// Post calls f in the actor, unless the epoch is over.
	Post(f func())
	// AfterFunc posts f after d, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func())
	// RetryLater calls f after the next reconnect, or after a pause while the session is CONNECTED.
	RetryLater(f func())
	// RetryAfter is RetryLater after a pause, which may be 0.
	RetryAfter(pause time.Duration, f func())

	// EndSession ends the session because of err: its end alone deletes the node that may be at
	// path.
	EndSession(path string, err error)
	// SessionNodeFailed notes that the session node could not be written.
	SessionNodeFailed(err error)
}

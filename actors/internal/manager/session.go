package manager

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Backend is what locks live on: a *[zkbridge.Bridge], or a Remote. The methods do not block.
type Backend interface {
	// Ref takes the messages Subscribe and Unsubscribe, and sends SessionChanged.
	Ref() messages.BridgeRef
	// Session returns the present state, by the clock.
	Session() zkbridge.Session
	// Sessions returns a channel with the present state, and then each change.
	Sessions(ctx context.Context) <-chan zkbridge.Session
	// Lost reports whether the session of an epoch must be taken for lost now.
	Lost(epoch uint64) bool
	// Stats returns counts since the beginning.
	Stats() zkbridge.Stats
	// SetServers replaces the servers.
	SetServers(list string) error
}

// AnySession is the session that locks live on. The [zkbridge.Internals] of a bridge are one, with
// ZooKeeper. Package remote has another, with a lock server. The methods do not block.
type AnySession interface {
	Backend
	// Now returns the time since some instant, also while the machine is suspended.
	Now() time.Duration
	// TimeOf returns the time at which Now returned at.
	TimeOf(at time.Duration) time.Time
	// LostAt is Lost at the moment when Now returned at.
	LostAt(epoch uint64, at time.Duration) bool
	// OutageText says since when there is no answer, and why; "" without an outage.
	OutageText() string
	// Explain adds the outage to the error of a wait, if there is one.
	Explain(err error) error
	// OnBatch has f called with the number of operations of each transaction; nil ends that.
	OnBatch(f func(operations int))
}

var (
	_ Backend    = (*zkbridge.Bridge)(nil)
	_ AnySession = zkbridge.Internals(nil)
)

// Remote is the session of a process without ZooKeeper, with a lock server.
type Remote interface {
	AnySession
	// Close ends the session. It is called when the locks have ended; the system that they run in ends then.
	Close() error
	// NewActor returns the actor of an entry, which asks the lock server.
	NewActor(e *Entry) host.Actor
	// Ask asks a question, with an id of its own. It blocks until next has returned false for an
	// answer, the server refuses the question, or ctx ends.
	Ask(ctx context.Context, q *messages.Question, next func(value []byte) (more bool)) error
}

package manager

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// AnySession is the session that locks live on. A [zkbridge.Bridge] is one, with ZooKeeper. Package
// remote has another, with a lock server. The methods do not block.
type AnySession interface {
	// Ref takes the messages Subscribe and Unsubscribe, and sends SessionChanged.
	Ref() messages.BridgeRef
	// Session returns the present state, by the clock.
	Session() zkbridge.Session
	// Sessions returns a channel with the present state, and then each change.
	Sessions(ctx context.Context) <-chan zkbridge.Session
	// Now returns the time since some instant, also while the machine is suspended.
	Now() time.Duration
	// TimeOf returns the time at which Now returned at.
	TimeOf(at time.Duration) time.Time
	// Lost reports whether the session of an epoch must be taken for lost now; LostAt, when Now
	// returned at.
	Lost(epoch uint64) bool
	LostAt(epoch uint64, at time.Duration) bool
	// OutageText says since when there is no answer, and why; "" without an outage.
	OutageText() string
	// Explain adds the outage to the error of a wait, if there is one.
	Explain(err error) error
	// Stats returns counts since the beginning.
	Stats() zkbridge.Stats
	// OnBatch has f called with the number of operations of each transaction; nil ends that.
	OnBatch(f func(operations int))
	// SetServers replaces the servers.
	SetServers(list string) error
}

var _ AnySession = (*zkbridge.Bridge)(nil)

// Remote is the session of a process without ZooKeeper, with a lock server.
type Remote interface {
	AnySession
	// Close ends the session, and the system that its locks run in. It is called when the locks have
	// ended.
	Close() error
	// NewActor returns the actor of an entry, which asks the lock server.
	NewActor(e *Entry) host.Actor
	// Ask asks a question, with an id of its own. It blocks until next has returned false for an
	// answer, the server refuses the question, or ctx ends.
	Ask(ctx context.Context, q *messages.Question, next func(value []byte) (more bool)) error
}

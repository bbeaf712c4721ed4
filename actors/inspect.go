package actors

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// Queue is the queue of one lock at one moment, as its nodes show it.
type Queue struct {
	// Path is the lock's path.
	Path string
	// Recipe is "mutex", "read-write", "semaphore", "leader latch" or "custom", by the names of the
	// nodes. It is empty while the lock has no node.
	Recipe string
	// Permits is how many permits a semaphore has. It is 0 if that is not known, or if its
	// processes do not agree: see [Participant.Permits]. Curator's nodes and those of SharedPermits
	// do not show the number.
	Permits int
	// Participants are the holders and the waiters, in their order.
	//
	// The participants of a semaphore are its leases, with the kind "permit", and behind them the
	// requests in the request queue that have no lease, with the kind "request". (A request may
	// appear beside its leases if one transaction has created them together with those of others.)
	// A lease holds by the number of permits of its process. If nothing shows that, Holds is true
	// of the leases that hold for certain, and false of the last leases of a session that has
	// requests in the request queue: they may hold or not.
	//
	// No participant of a custom lock Holds, because only its handle knows the rule: use the
	// handle's Participants. A waiter of kazoo's that polls has no node.
	Participants []Participant
	// Err is the reason why Observe cannot read the queue at present. Participants are the last
	// ones that Observe has read then, or the present ones without tokens if only the generation of
	// tokens cannot be read. Err is nil in the result of Inspect.
	Err error `json:"-"`
}

// String returns the recipe and the path, and how many hold and wait.
func (q Queue) String() string {
	if q.Recipe == "" {
		return q.Path + ": not in use"
	}
	holders := 0
	for _, p := range q.Participants {
		if p.Holds {
			holders++
		}
	}
	return fmt.Sprintf("%s %s: %d hold, %d wait", q.Recipe, q.Path, holders, len(q.Participants)-holders)
}

// Inspect returns the queue of the lock at path, whichever client or library uses it. It finds the
// recipe by the names of the nodes, and needs no handle. A lock that is not in use, and a path that
// does not exist, have an empty queue.
//
// The names in a directory are of one moment during the call, and include all nodes that ZooKeeper
// had acknowledged when Inspect was called; the contenders hold by these names. The data are read
// after them. Nodes that are deleted meanwhile are left out, which lets the contenders behind them
// appear to hold: by then they do. A semaphore's request queue is read before its leases, so that
// no request is missed between the two.
//
// It blocks until ZooKeeper has answered, with one request for each contender, ctx ends, or the
// connection is lost (ErrSuspended). It returns ErrNoAuth if this process may not list the
// directory; contenders whose data it may not read have none. If the generation of tokens alone
// cannot be read, it returns that error, and the queue without tokens.
func (l *Locks) Inspect(ctx context.Context, path string) (Queue, error) {
	q, err := inspection.Inspect.One(ctx, l.at(path), struct{}{})
	return queueOf(path, q), err
}

// queueOf returns the queue of the lock at path.
func queueOf(path string, q inspection.Snapshot) Queue {
	return Queue{Path: path, Recipe: q.Recipe, Permits: q.Permits, Participants: participants(q.Contenders)}
}

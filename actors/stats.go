package actors

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Stats counts what Locks has done since it was made; see Locks.Stats. Requested is the sum of
// Waiting, Acquired and all of Refused; Acquired is the sum of Held, Released and all of Lost.
type Stats struct {
	// Requested counts the requests that came to a lock. A request that needs no lock to be
	// refused, such as one with an invalid option or a context that has ended, does not.
	Requested uint64
	// Acquired counts the grants, and Released those that were given back: by Release, or because
	// the request was cancelled after all.
	Acquired, Released uint64
	// Lost counts the grants that ended otherwise, by the error that Grant.Err returns. Refused
	// counts the requests that were never granted, by the error of their future; a request whose
	// context ended is one of ErrCancelled. A reason without requests is missing.
	Lost, Refused map[error]uint64
	// Waiting is how many requests wait at the moment, and Held how many grants hold.
	Waiting, Held int
	// LocalHandOffs counts the nodes of which the lock passed to another contender of this process,
	// RemoteHandOffs those that got it when the node of another process went. A request for several
	// nodes, such as one for a MultiLock, counts several times.
	LocalHandOffs, RemoteHandOffs uint64
	// Batches counts the transactions that created and deleted nodes, and BatchOperations their
	// creates and deletes.
	Batches, BatchOperations uint64
	// Session is the present state of the session. Its Epoch counts the sessions.
	Session zkbridge.Session
	// Suspensions counts how often the connection of a session was lost, and SessionsLost the
	// sessions that were lost.
	Suspensions, SessionsLost uint64
}

// Stats returns the present counts. It never blocks, and costs the locks nothing more: all of them
// are counted anyway. Requests that end meanwhile may count as waiting or held, but no sum is less
// than its parts.
func (l *Locks) Stats() Stats {
	c, bridge := l.manager.Counters(), l.manager.Session.Stats()
	return Stats{Requested: c.Requested, Acquired: c.Acquired, Released: c.Released, Lost: byError(c.Lost), Refused: byError(c.Refused),
		Waiting: c.Waiting, Held: c.Held, LocalHandOffs: c.LocalHandOffs, RemoteHandOffs: c.RemoteHandOffs,
		Batches: bridge.Batches, BatchOperations: bridge.BatchOperations, Session: l.Session(),
		Suspensions: bridge.Suspensions, SessionsLost: bridge.SessionsLost}
}

// byError returns the counts that are not 0, by the error of their reason.
func byError(counts [manager.ReasonCount]uint64) map[error]uint64 {
	all := map[error]uint64{}
	for reason, n := range counts {
		if n > 0 {
			all[reasonError(messages.Reason(reason))] = n
		}
	}
	return all
}

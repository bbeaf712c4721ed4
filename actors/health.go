package actors

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Health returns nil if locks can be acquired: there is a session, ZooKeeper answers, and the
// generation of tokens can be read and is high enough, without which no lock is granted. Otherwise
// the error says what is wrong, and since when ZooKeeper has not answered: errors.Is finds
// ErrSuspended, ErrSessionLost, ErrNoAuth, ErrUnavailable (as of a local session), ErrInvalid (of the
// generation's node), ErrClosed, or the cause of ctx. It asks ZooKeeper, by a write that changes nothing
// and a read, and blocks until ZooKeeper answers, ctx ends or the connection is lost: for a server that
// is silent, ctx needs a deadline. A lock that another client holds is no error, nor is Drain. Stats has
// the state of the session without asking.
func (l *Locks) Health(ctx context.Context) error {
	if _, err := inspection.CheckHealth.One(ctx, l.at(""), struct{}{}); err != nil {
		return fmt.Errorf("locks are not available: %w", inspection.Summarize(l.manager.Session, err))
	}
	return nil
}

// Stats counts what Locks has done since it was made; see Locks.Stats. Requested is the sum of
// Waiting, Acquired and all of Refused; Acquired is the sum of Held, Released and all of Lost.
type Stats struct {
	// Requested counts the requests that came to a lock. A request that needs no lock to be
	// refused, such as one with an invalid option or a context that has ended, does not.
	Requested uint64
	// Acquired counts the grants, and Released those that were given back: by Release, or because
	// the request was cancelled after all.
	Acquired, Released uint64
	// Lost counts the grants that ended otherwise, by the error that Grant.Err returns, or that Unlock
	// returns if the session was lost before ZooKeeper had confirmed it. Refused
	// counts the requests that were never granted, by the error of their future; a request whose
	// context ended is one of ErrCancelled. A reason without requests is missing.
	Lost, Refused map[error]uint64
	// Waiting is how many requests wait at the moment, and Held how many grants hold, or are released
	// without ZooKeeper's answer yet.
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

// OpenRequest is a request of this process that waits or holds, at one moment: see Locks.OpenRequests.
type OpenRequest struct {
	// Path is the lock's path. That of a multi-lock names its members.
	Path string `json:"path"`
	// Recipe is "mutex", "read-write", "semaphore", "multi-lock" or "custom". A SemaphoreMutex is a
	// semaphore.
	Recipe string `json:"recipe"`
	// Kind is the kind that the request is for: "read" or "write" for a read-write lock, "permit"
	// for a semaphore, the name of a kind for a custom lock, otherwise "exclusive".
	Kind string `json:"kind"`
	// Owner is the name that WithOwner has given to the owner, or "".
	Owner string `json:"owner,omitempty"`
	// Actor is the address of the actor that has sent the request; "" if Go code has made it.
	Actor string       `json:"actor,omitempty"`
	State RequestState `json:"state"`
	// Since is when the request was made, and, once it was granted, when it was granted.
	Since time.Time `json:"since"`
}

// RequestState is how far an open request has come.
type RequestState string

// The states of an open request.
const (
	// RequestWaiting: the request waits for other contenders or for ZooKeeper.
	RequestWaiting RequestState = "waiting"
	// RequestHeld: the owner holds the lock.
	RequestHeld RequestState = "held"
	// RequestReleasing: the owner has released the lock, and ZooKeeper has not confirmed it.
	RequestReleasing RequestState = "releasing"
	// RequestLost: the grant is lost, and its named owner has yet to release it.
	RequestLost RequestState = "lost"
)

var requestStates = [...]RequestState{manager.Waiting: RequestWaiting, manager.Held: RequestHeld,
	manager.Releasing: RequestReleasing, manager.Lost: RequestLost}

// OpenRequests returns what this process holds and waits for, in all locks, by path and time. Each lock
// answers at its own moment, so that a request may have ended by the time that Open returns. It
// asks ZooKeeper nothing. It waits for the messages that the locks' actors have already, which
// takes milliseconds when they are busy. After Close it returns nothing. An actor must not call it.
func (l *Locks) OpenRequests() []OpenRequest {
	var all []OpenRequest
	for _, r := range l.manager.Open() {
		if !r.FromLockActor {
			recipe := r.Entry.Recipe
			all = append(all, OpenRequest{Path: r.Entry.Path, Recipe: recipe.Family(), Kind: recipe.KindName(r.Kind), Owner: r.Owner, Actor: r.Actor,
				State: requestStates[r.State], Since: r.Since})
		}
	}
	slices.SortFunc(all, func(a, b OpenRequest) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), a.Since.Compare(b.Since))
	})
	return all
}

// HeldHere reports whether an owner of this process holds the lock in the handle's mode, by a
// request for the lock itself or for a MultiLock with the lock as a member. With owners, only
// grants of these named owners count. It asks ZooKeeper nothing: Guard and Verify do. Like
// Grant.Err, it looks at the clock, and reports no grant of a session that must be taken for lost.
// It waits for the messages that the lock's actor has already. An actor must not call it.
func (h *handle) HeldHere(owners ...Owner) bool {
	return slices.ContainsFunc(h.manager.OpenAt(h.path), func(r manager.OpenRequest) bool {
		return r.State == manager.Held && r.Kind == h.kind && (len(owners) == 0 || slices.Contains(owners, Owner(r.Owner)))
	})
}

// Monitor hears of what locks do, for metrics and traces: see Config.Monitor, and package
// actors/telemetry, which is one for OpenTelemetry. Its methods are called while locks work, from
// several goroutines, and must neither block nor call methods of Locks other than Stats and
// Session. Without a Monitor nothing is called and nothing is allocated.
type Monitor interface {
	// Start is called once for each Locks, with its Stats. Close calls the function that it
	// returns.
	Start(stats func() Stats) (stop func())
	// Request is called when a lock has accepted a request. ctx is the context of Acquire or Lock;
	// for the request of an actor it is context.Background. If the result is nil, nothing more is
	// called for the request.
	Request(ctx context.Context, r MonitoredRequest) RequestMonitor
	// Batch is called with the number of creates and deletes of each transaction of contenders'
	// nodes.
	Batch(operations int)
}

// MonitoredRequest is a request as a Monitor hears of it. Its fields are as in OpenRequest.
type MonitoredRequest struct {
	Path, Recipe, Kind, Owner string
}

// RequestMonitor hears of one request: of Refused, or of Granted and then Ended, once each. A
// re-entry is a request of its own.
type RequestMonitor interface {
	// Granted is called before the owner hears of the grant.
	Granted(waited time.Duration, token Token)
	// Refused is called with the error of the future, as Stats counts it.
	Refused(waited time.Duration, err error)
	// Ended is called when ZooKeeper has confirmed the release, with nil, or when the grant is lost, or
	// the session before that, with the error.
	Ended(held time.Duration, err error)
}

// startMonitor has the configured Monitor hear of all that follows. The result ends that.
func (l *Locks) startMonitor(m Monitor) (stop func()) {
	if m == nil {
		return func() {}
	}
	l.manager.Session.OnBatch(m.Batch)
	ended := m.Start(l.Stats)
	return func() {
		l.manager.Session.OnBatch(nil)
		ended()
	}
}

// monitorOf returns the Monitor for the manager; nil for none.
func monitorOf(m Monitor) manager.Monitor {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, e *manager.Entry, kind, owner string) manager.RequestMonitor {
		if r := m.Request(ctx, MonitoredRequest{e.Path, e.Recipe.Family(), kind, owner}); r != nil {
			return requestMonitor{r}
		}
		return nil
	}
}

// requestMonitor is a RequestMonitor as the manager has it.
type requestMonitor struct{ of RequestMonitor }

// Granted implements manager.RequestMonitor.
func (r requestMonitor) Granted(waited time.Duration, token requests.Token) {
	r.of.Granted(waited, Token(token))
}

// Refused implements manager.RequestMonitor.
func (r requestMonitor) Refused(waited time.Duration, reason messages.Reason) {
	r.of.Refused(waited, reasonError(reason))
}

// Ended implements manager.RequestMonitor.
func (r requestMonitor) Ended(held time.Duration, reason messages.Reason) {
	r.of.Ended(held, reasonError(reason))
}

// reasonError returns the error of this package for a reason; nil for 0.
func reasonError(reason messages.Reason) error {
	switch reason {
	case 0:
		return nil
	case messages.Reason_CANCELLED:
		return ErrCancelled
	}
	return reason
}

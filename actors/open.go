package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
)

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
			all = append(all, openRequest(r))
		}
	}
	slices.SortFunc(all, func(a, b OpenRequest) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), a.Since.Compare(b.Since))
	})
	return all
}

func openRequest(r manager.OpenRequest) OpenRequest {
	recipe := r.Entry.Recipe
	return OpenRequest{Path: r.Entry.Path, Recipe: recipe.Family(), Kind: recipe.KindName(r.Kind), Owner: r.Owner, Actor: r.Actor,
		State: requestStates[r.State], Since: r.Since}
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

package actors

import (
	"cmp"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
)

// MultiLock is several locks as one: a grant holds all of them. One transaction of ZooKeeper puts a
// contender into each of their queues. So one of two multi-locks comes first in all queues that
// they share, and they cannot deadlock, in whatever order the callers name the members. A
// multi-lock with semaphores among its members first enters the request queues of all semaphores by
// one transaction. When it has passed them, it enters the queues of all members by another. A
// MultiLock is a cheap handle like Mutex. On ZooKeeper it is no more than its members, and contends
// with their own holders, also Curator's.
//
// A client that takes some of the members one after the other, as Curator's
// InterProcessMultiLock does, may hold one and wait for another behind a multi-lock that waits
// for the first. Beside such clients use WithTimeout and ask again: a request that ends releases
// all members.
//
// An owner enters a multi-lock of mutexes and the like again by a handle of the same members in the
// same order, and shares what its first request has asked for (Revocable, WithData). Any other
// request of an owner that waits for a member or holds it ends with ErrDeadlock, also if it is a
// Try: for a multi-lock that has only some of the members in common, or a semaphore, or for a
// single member of what a multi-lock has taken. It would wait for the rest with that member in its
// hands, and no token would be right for all members. An owner that has lost a member and not
// released it gets the reason of that loss. An owner has a member until its release is done, see
// Grant.Release.
//
// The loss of one member ends the grant, which releases the other members at once. The grant's
// Nodes are the nodes of all members, and its token is one for all.
type MultiLock struct{ handle }

// Member is a lock that can be part of a MultiLock: any handle of this package except a
// MultiLock and one with a LocalQueue.
type Member interface {
	Path() string
	member() *handle
}

func (h *handle) member() *handle { return h }

// MultiLock returns the lock that consists of the members, which must be of these Locks, and each
// at another path: 64 at most. It does not block or ask ZooKeeper: unacceptable members show at
// the first request, as ErrInvalid.
//
// An owner that has lost a multi-lock is refused it until the owner releases the grant. A member
// alone does not know of the loss: an owner that asks for it gets it anew, behind all waiters,
// with a greater token.
func (l *Locks) MultiLock(members ...Member) *MultiLock {
	r, err := l.multiLockRecipe(members)
	return &MultiLock{handle{manager: l.manager, path: r.Name, recipe: r, problem: err}}
}

func (l *Locks) multiLockRecipe(members []Member) (*recipe, error) {
	var locks []recipes.Member
	problem := error(nil)
	for _, m := range members {
		h := handleOf(m)
		if problem = l.checkMember(h); problem != nil {
			break
		}
		locks = append(locks, recipes.Member{Path: h.path, Recipe: h.recipe, Kind: h.kind})
	}
	r, err := recipes.MultiLock(locks)
	return r, cmp.Or(problem, err)
}

func (l *Locks) checkMember(h *handle) error {
	switch {
	case h == nil:
		return check.Invalid("multi-lock: a member is nil")
	case h.problem != nil:
		return h.problem
	case h.manager != l.manager:
		return check.Invalid(fmt.Sprintf("multi-lock: %s is a lock of other Locks: all must be of one", h.path))
	}
	return nil
}

func handleOf(m Member) *handle {
	if m == nil {
		return nil
	}
	return m.member()
}

package actors

import (
	"fmt"
	"strings"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// MultiLock is several locks as one: all of them are held, or none. One transaction of
// ZooKeeper puts a contender into each of their queues, so that of two multi-locks one
// comes first wherever they meet: they cannot deadlock, in whatever order their members
// are given. With semaphores among the members it first queues at the gates of all
// semaphores by one transaction, and takes its places in all queues by another when it is
// past them. It is a cheap handle like Mutex; on ZooKeeper it is no more than its
// members, with whose own holders it contends, be they Curator's.
//
// A client that takes some of the members one after the other, as Curator's
// InterProcessMultiLock does, may hold one and wait for another behind a multi-lock that
// waits for the first. Beside such clients use WithTimeout and ask again: a request that
// ends gives all members back.
//
// An owner enters again what one request for a multi-lock has taken: the same multi-lock,
// a multi-lock of some of its members, or a single member. A request whose owner waits for
// a member or holds it in any other way ends with ErrDeadlock at once, also if it is a
// Try: the owner would wait for the rest with that member in its hands, and no token would
// be right for all members. A permit of a semaphore is never entered again, with one exception to
// the rule above: a multi-lock of semaphores alone may be had by an owner that has permits
// of all of them. An owner that has lost a member and not released it gets the reason of
// that loss. An owner has a member until its release is done, see Grant.Release.
//
// Its grant is lost when that of one member is; the others are given up at once. Its
// Nodes are those of all members, its token is one for all.
type MultiLock struct{ handle }

// Member is a lock that may be part of a MultiLock: any handle of this package, but a
// MultiLock and one with a LocalQueue.
type Member interface {
	Path() string
	member() *handle
}

func (h *handle) member() *handle { return h }

// MultiLock gives the lock that consists of the members, which must be of these Locks,
// and each of another path: 64 at most. It does not block and does nothing yet: members
// that are not acceptable show at the first request, as ErrInvalid.
//
// An owner that has lost a multi-lock is refused that until it releases the grant. A member
// that it asks for by itself does not know of the loss: the owner gets it anew, behind all that
// wait, with a greater token.
func (l *Locks) MultiLock(members ...Member) *MultiLock {
	r, err := l.multi(members)
	return &MultiLock{handle{manager: l.manager, path: r.name, recipe: r, problem: err}}
}

func (l *Locks) multi(members []Member) (*recipe, error) {
	r := &recipe{kinds: []string{"exclusive"}, newActor: newMultiLock, memberKinds: []queue.Kind{}}
	var names []string
	taken := map[string]bool{}
	for _, m := range members {
		h := handleOf(m)
		switch {
		case h == nil:
			return r, invalid("multi-lock: a member is nil")
		case h.problem != nil:
			return r, h.problem
		case h.manager != l.manager:
			return r, invalid(fmt.Sprintf("multi-lock: %s is a lock of other Locks: all must be of one", h.path))
		case h.recipe.memberKinds != nil:
			return r, invalid(fmt.Sprintf("multi-lock: %s is one itself: give its members instead", h.path))
		case h.recipe.local != nil:
			return r, invalid(fmt.Sprintf("multi-lock: %s has a local queue, which keeps it beyond a request", h.path))
		case taken[h.path]:
			return r, invalid(fmt.Sprintf("multi-lock: %s is given twice", h.path))
		}
		taken[h.path] = true
		names = append(names, fmt.Sprintf("%s (%s)", h.path, h.recipe.kindName(h.kind)))
		r.deps = append(r.deps, dependency{path: h.path, recipe: h.recipe})
		r.memberKinds = append(r.memberKinds, h.kind)
	}
	r.name = "multi-lock of " + strings.Join(names, ", ")
	if n := len(members); n == 0 || n > zkbridge.MaxParts {
		return r, invalid(fmt.Sprintf("multi-lock of %d members: it must have 1 to %d", n, zkbridge.MaxParts))
	}
	return r, nil
}

func handleOf(m Member) *handle {
	if m == nil {
		return nil
	}
	return m.member()
}

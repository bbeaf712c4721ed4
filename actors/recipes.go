package actors

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Mutex is a lock that one owner holds at a time: fair in the order of arrival, across
// processes, and re-entrant by Owner. On ZooKeeper it is Curator's InterProcessMutex, with which
// it may share a path. A Mutex is a cheap handle; any number of handles on one path are the same
// lock. Its methods may be called from any goroutine.
type Mutex struct{ handle }

// Mutex returns the mutex at path, an absolute path of ZooKeeper whose nodes are created when
// needed. It does not block or ask ZooKeeper: an unacceptable path shows at the first request, as
// ErrInvalid.
func (l *Locks) Mutex(path string, options ...LockOption) *Mutex {
	return &Mutex{l.handle(path, recipes.Mutex, 0, options)}
}

// RWMutex is a lock that one writer or any number of readers hold at a time: fair in the order of
// arrival, so that neither starves the other, across processes, and re-entrant by Owner. On
// ZooKeeper it is Curator's InterProcessReadWriteLock, with which it may share a path. It is a
// cheap handle like Mutex.
//
// An owner that holds the write lock gets the read lock at once. If it then releases the write
// lock, it goes on as a reader (downgrade): no writer in the queue gets in between, and the grant
// keeps the writer's token. There is no way from the read lock to the write lock: such a request
// is refused with ErrDeadlock, since two readers that wait for each other to leave would wait for
// ever.
//
// Beside Curator before 5.5 one case is unsafe, as it is between such Curators: when one of those
// downgrades, writers in the queue do not see its reader. A Mutex on the same path, of another
// process, does not see the reader either: all processes must use a path for one recipe.
type RWMutex struct{ read, write ModeLock }

// ModeLock is a lock of several kinds as it is held for one of them, such as the read lock. Its
// PID is the same for every kind: an Acquire of an actor names the kind itself.
type ModeLock struct{ handle }

// RWMutex returns the read-write lock at path, an absolute path of ZooKeeper whose nodes are
// created when needed. It does not block or ask ZooKeeper: an unacceptable path shows at the
// first request, as ErrInvalid.
func (l *Locks) RWMutex(path string, options ...LockOption) *RWMutex {
	mode := func(kind queue.Kind) ModeLock { return ModeLock{l.handle(path, recipes.ReadWrite, kind, options)} }
	return &RWMutex{read: mode(queue.Shared), write: mode(queue.Exclusive)}
}

// Read returns the read lock.
func (m *RWMutex) Read() *ModeLock { return &m.read }

// Write returns the write lock.
func (m *RWMutex) Write() *ModeLock { return &m.write }

// Semaphore has a number of permits, which its holders share: each request asks for one or several
// of them. It is fair in the order of arrival, across processes: later requests for few permits do
// not pass an earlier request for many, and all permits of a request are granted at one moment. On
// ZooKeeper it is Curator's InterProcessSemaphoreV2, with which it may share a path. A Semaphore is
// a cheap handle; any number of handles on one path are the same semaphore. Its methods may be
// called from any goroutine.
//
// A request asks for one permit, or for several with the option Permits. It takes permits of its
// own, even if its owner holds some: there is no re-entry. A request that would wait for ever for
// other requests of its own owner ends with ErrDeadlock at once. A Try is also refused while
// another process is about to acquire. A grant of several permits has a node for each, see
// Grant.Nodes, and is lost and released as a whole. Single permits of it cannot be released: the
// token belongs to the permit created last, whose node could be gone then. To release permits one
// by one, make a request for each.
//
// Curator's acquire of several leases takes one after the other, and other clients may come
// between. A client of Curator that has some of its leases may wait in the request queue behind a
// request for permits that only those leases could free; two clients of Curator may wait for each
// other in the same way. Beside such clients use WithTimeout for requests for several permits and
// ask again, or have Curator's clients acquire one lease at a time.
type Semaphore struct{ handle }

// Semaphore returns the semaphore at path with so many permits, or with the number of
// SharedPermits. All processes that use the path must give the same number. A process that meets a
// lease of another process with another number logs that at ERROR, and goes on with its own number,
// so that more may hold than the smaller number; Inspect shows both. Curator's leases, and those of
// SharedPermits, do not show a number. Semaphore does not block or ask ZooKeeper: an unacceptable
// argument shows at the first request, as ErrInvalid.
func (l *Locks) Semaphore(path string, permits int, options ...LockOption) *Semaphore {
	return &Semaphore{l.semaphore(path, permits, options)}
}

// Remaining asks ZooKeeper how many permits are free: neither held nor reserved for a waiter. Its
// result was right at some moment during the call. It blocks until ZooKeeper answers, ctx ends, or
// the connection is lost (ErrSuspended).
func (s *Semaphore) Remaining(ctx context.Context) (int, error) {
	return inspection.Remaining.One(ctx, s.target(), struct{}{})
}

// SemaphoreMutex is a lock that one owner holds at a time. Unlike a Mutex it is not re-entrant:
// an owner that asks again while it waits or holds gets ErrDeadlock at once. On ZooKeeper it is
// Curator's InterProcessSemaphoreMutex: a Semaphore of one permit.
type SemaphoreMutex struct{ handle }

// SemaphoreMutex returns the mutex at path; see Locks.Mutex.
func (l *Locks) SemaphoreMutex(path string, options ...LockOption) *SemaphoreMutex {
	return &SemaphoreMutex{l.semaphore(path, 1, options)}
}

func (l *Locks) semaphore(path string, permits int, options []LockOption) handle {
	r := recipes.Semaphore(permits, "")
	with, err := withOptions(r, options)
	return handle{manager: l.manager, path: path, recipe: with, problem: cmp.Or(recipes.CheckPermits(r), err)}
}

// SharedPermits has a node hold the number of a semaphore's permits, so that all users of the
// semaphore follow when the number changes: see SharedCount, which changes it. The node is
// Curator's SharedCount, as an InterProcessSemaphoreV2 may be made with. A missing node is
// created with the number that Locks.Semaphore is called with.
//
// If the number shrinks, the holders keep their permits. A request for more permits than there
// are waits until there are more, and all requests behind it wait.
func SharedPermits(path string) LockOption { return lockOption(recipes.SharedPermits(path)) }

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
	var locks []manager.Member
	var problem error
	for _, m := range members {
		if problem = l.checkMember(m); problem != nil {
			break
		}
		h := m.member()
		locks = append(locks, manager.Member{Path: h.path, Recipe: h.recipe, Kind: h.kind})
	}
	r, err := recipes.MultiLock(locks)
	return &MultiLock{handle{manager: l.manager, path: r.Name, recipe: r, problem: cmp.Or(problem, err)}}
}

func (l *Locks) checkMember(m Member) error {
	if m == nil || m.member() == nil {
		return check.Invalid("multi-lock: a member is nil")
	}
	switch h := m.member(); {
	case h.problem != nil:
		return h.problem
	case h.manager != l.manager:
		return check.Invalid(fmt.Sprintf("multi-lock: %s is a lock of other Locks: all must be of one", h.path))
	}
	return nil
}

// Custom is a lock by a rule of your own: the rule has the kinds that the lock can be held for,
// and says which kinds exclude each other. In all else it is like a Mutex: across processes, fair
// in the order of arrival, cancellable, with tokens. It is a cheap handle, too.
//
// A request waits for all contenders ahead of it that block its kind, whether they hold or wait. So
// two kinds exclude each other if each is in the other's BlockedBy; if one of them is not, it
// passes the other and holds beside it. There is no order other than the order of arrival:
// ZooKeeper does not show whether a contender ahead holds already or has yet to notice that it may.
// A contender that overtakes it could hold beside it, unless each holder first left a marker, which
// would cost every acquire another write.
type Custom struct {
	manager *manager.Manager
	path    string
	recipe  *recipe
	problem error // what is wrong with the recipe, or nil
	modes   []ModeLock
}

// Custom returns the lock at path by the rule. name is the name of the rule in errors, and kinds
// are the names of its kinds, in the order of their numbers in the rule. (An Acquire of an actor
// numbers several kinds from 1: 0 is refused.) All processes that use the path must use one rule
// for it; nothing checks that across processes.
//
// The rule has Permits of at least 1. For each kind, 64 at most, it has an entry in BlockedBy
// and a marker of its own, such as "-intent-read-", as part of its nodes' names. No marker may
// end as another does. Only children with one of the markers count: "-lock-" includes those of a
// Curator's mutex, and "__lock__" those of kazoo's. Reenter may be empty. Otherwise it has an
// entry for each kind, too: the kind itself if the kind is re-entrant, and other kinds from which
// a holder may change to this kind and keep its place. Such a change needs Permits 1, and the
// kind may exclude no contender that the other kind does not exclude. An owner that would wait
// for itself gets ErrDeadlock if Permits is 1; with more permits that is not checked.
//
// It does not block or ask ZooKeeper: an unacceptable rule or path shows at the first request,
// as ErrInvalid. Locks of a lock server, which does not know the rule, refuse all its requests.
func (l *Locks) Custom(path, name string, rule queue.Rule, kinds ...string) *Custom {
	r := recipes.Custom(name, rule, kinds)
	c := &Custom{manager: l.manager, path: path, recipe: r, problem: cmp.Or(checkCustom(r), l.needsZooKeeper("a lock by a rule of your own", "use another recipe")), modes: make([]ModeLock, len(kinds))}
	for k := range kinds {
		c.modes[k] = ModeLock{c.handle(queue.Kind(k), c.problem)}
	}
	return c
}

func (c *Custom) handle(kind queue.Kind, problem error) handle {
	return handle{manager: c.manager, path: c.path, recipe: c.recipe, kind: kind, problem: problem}
}

// Kind returns the lock as it is held for the kind of the given name.
func (c *Custom) Kind(name string) *ModeLock {
	problem := c.problem
	if problem == nil {
		if k := slices.Index(c.recipe.Kinds, name); k >= 0 {
			return &c.modes[k]
		}
		problem = check.Invalid(fmt.Sprintf("kind %q: a %s has %s", name, c.recipe, strings.Join(c.recipe.Kinds, ", ")))
	}
	return &ModeLock{c.handle(0, problem)}
}

func checkCustom(r *recipe) error {
	if r.Name == "" {
		return check.Invalid("custom lock: it must have a name")
	}
	if err := r.Rule.Check(r.Kinds); err != nil {
		return check.Invalid(fmt.Sprintf("rule of a %s: %v", r.Name, err))
	}
	for k, marker := range r.Rule.Markers {
		if err := zkpath.Check("/" + marker); err != nil {
			return check.Invalid(fmt.Sprintf("rule of a %s: kind %q: marker %q cannot be in a node's name: %v", r.Name, r.Kinds[k], marker, err))
		}
	}
	return nil
}

// SharedCount is a number in a node of ZooKeeper, Curator's SharedCount: its data are four bytes,
// the highest first. With SharedPermits it is the number of permits of a semaphore. Its methods
// may be called from any goroutine; they block until ZooKeeper answers, ctx ends, or the
// connection is lost (ErrSuspended).
type SharedCount struct {
	at      *inspection.Target
	initial int
}

// Count is the value of a SharedCount at one moment. Version distinguishes it from the values
// before and after it; it is -1 while there is no node.
type Count struct {
	Value   int
	Version int32
}

// SharedCount returns the count at path. initial is its value while there is no node.
func (l *Locks) SharedCount(path string, initial int) *SharedCount {
	return &SharedCount{l.at(path), initial}
}

// Get asks ZooKeeper for the present value. It returns ErrInvalid for a path that is not
// acceptable, and for a node whose data are no count.
func (c *SharedCount) Get(ctx context.Context) (Count, error) {
	now, err := inspection.GetCount.One(ctx, c.at, c.initial)
	return Count(now), err
}

// Set writes the value, whatever it was. It creates a missing node, and the missing nodes above
// it. It refuses, with ErrInvalid, to overwrite a node whose data are no count, and to create one that is named
// as a contender's node: that would block a lock. After messages.Reason_OUTCOME_UNKNOWN the value may have
// been written, or may be written later.
func (c *SharedCount) Set(ctx context.Context, value int) error {
	_, err := inspection.SetCount.One(ctx, c.at, value)
	return err
}

// TrySet writes the value if seen is still the present one. It returns false if another client
// has written since. Its errors are those of Set.
func (c *SharedCount) TrySet(ctx context.Context, seen Count, value int) (bool, error) {
	return inspection.TrySetCount.One(ctx, c.at, inspection.CountChange{Version: seen.Version, Value: value})
}

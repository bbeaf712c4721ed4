package actors

import (
	"cmp"
	"context"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/recipes"
)

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

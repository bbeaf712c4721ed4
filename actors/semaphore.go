package actors

import (
	"context"
	"fmt"
	"math"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// Semaphore lets a number of permits be held at a time, by processes that ask for some
// of them each. It is fair in the order of arrival, across processes: a request for many
// permits is not passed by later ones for few, and all of its permits are granted at one
// moment. On ZooKeeper it is Curator's InterProcessSemaphoreV2, with which it may share
// a path. A Semaphore is a cheap handle; any number of them on one path are the same
// semaphore. Its methods may be called from any goroutine.
//
// A request is for one permit, or for several with the option Permits. It takes permits
// of its own, also if it is of an owner that holds some: there is no re-entry. One that
// its owner's other requests would keep waiting for ever ends with ErrDeadlock at once. A
// Try is also refused while another process is about to acquire. A grant of several
// permits has a node for each, see Grant.Nodes, and is lost as a whole.
//
// Curator's acquire of several leases takes them one after the other, and others may come
// between. A client of Curator that has some of its leases may so wait at the gate behind a
// request for permits that only those leases could give; two clients of Curator may wait for
// each other in the same way. Beside such clients give requests for several permits a
// WithTimeout and ask again, or have Curator's clients acquire one lease at a time.
type Semaphore struct{ handle }

// Semaphore gives the semaphore at path, which has so many permits, or as many as
// SharedPermits says. All who use the path must say the same number, here and in other
// processes; nobody checks that for them. It does not block and does nothing yet: what is
// not acceptable shows at the first request, as ErrInvalid.
func (l *Locks) Semaphore(path string, permits int, options ...LockOption) *Semaphore {
	return &Semaphore{l.permits(path, permits, options)}
}

// Remaining asks ZooKeeper how many permits are free: neither held nor kept for somebody
// who waits. It tells of a moment during the call, and blocks until ZooKeeper answers,
// ctx ends, or the connection is lost (ErrSuspended).
func (s *Semaphore) Remaining(ctx context.Context) (int, error) {
	if s.problem != nil {
		return 0, s.problem
	}
	permits, err := s.permits(ctx)
	if err != nil {
		return 0, err
	}
	leases, err := s.manager.zk.Look(ctx, s.path+leaseSuffix+"/any") // for what is beside that
	if err != nil {
		return 0, err
	}
	return max(0, permits-len(leases.Names)), nil
}

// permits is how many a semaphore has now.
func (h *handle) permits(ctx context.Context) (int, error) {
	if h.recipe.countPath == "" {
		return h.recipe.permits, nil
	}
	now, err := (&SharedCount{h.manager, h.recipe.countPath, h.recipe.permits}).Get(ctx)
	return now.Value, err
}

// SemaphoreMutex is a lock that one owner holds at a time. Unlike a Mutex it is not
// re-entrant: an owner that asks again while it waits or holds gets ErrDeadlock at once.
// On ZooKeeper it is Curator's InterProcessSemaphoreMutex: a Semaphore of one permit.
type SemaphoreMutex struct{ handle }

// SemaphoreMutex gives the mutex at path; see Locks.Mutex.
func (l *Locks) SemaphoreMutex(path string, options ...LockOption) *SemaphoreMutex {
	return &SemaphoreMutex{l.permits(path, 1, options)}
}

func (l *Locks) permits(path string, n int, options []LockOption) handle {
	return l.handle(path, semaphoreRecipe, append([]LockOption{ofPermits(n)}, options...))
}

var (
	semaphoreRecipe    = &recipe{kinds: []string{"permit"}, newActor: newSemaphore}
	requestQueueRecipe = &recipe{name: "semaphore's queue", rule: queue.RequestQueue(), kinds: []string{"exclusive", "shared", "own"}, newActor: newLock}
)

func leasesRecipe(permits int) *recipe {
	return &recipe{name: "semaphore's leases", rule: queue.Leases(permits), kinds: []string{"permit"}, newActor: newLock}
}

func ofPermits(n int) LockOption {
	return func(r *recipe) error {
		r.name = fmt.Sprintf("semaphore of %d", n)
		if n < 1 || n > math.MaxInt32 {
			return invalid(fmt.Sprintf("%v permits: it must have from 1 to %d", r, math.MaxInt32))
		}
		r.permits, r.maxPermits = n, uint32(n)
		r.deps = []dependency{{suffix: requestQueueSuffix, recipe: requestQueueRecipe}, {suffix: leaseSuffix, recipe: leasesRecipe(n)}}
		return nil
	}
}

// SharedPermits has a node say how many permits a semaphore has, so that all who use it
// follow when the number changes: see SharedCount, which changes it. It is Curator's
// SharedCount, as an InterProcessSemaphoreV2 may be made with. If the node is missing it
// is made, with the number that Locks.Semaphore is called with.
//
// If there are fewer permits than before, those who hold keep them. A request for more
// than there are waits until there are more, and all behind it wait.
func SharedPermits(path string) LockOption {
	return func(r *recipe) error {
		if r.permits == 0 {
			return invalid(fmt.Sprintf("SharedPermits(%q): a %v has no permits", path, r))
		}
		if err := checkCountPath(path); err != nil {
			return err
		}
		r.name, r.countPath, r.maxPermits = "semaphore of as many as "+path+" says", path, math.MaxInt32
		r.deps = []dependency{{suffix: requestQueueSuffix, recipe: requestQueueRecipe}, {suffix: leaseSuffix, recipe: leasesRecipe(0)}} // until it is known
		return nil
	}
}

func checkCountPath(path string) error {
	if path == "/" {
		return invalid(`count path "/": it must name a node below the root`)
	}
	if err := zkbridge.CheckPath(path); err != nil {
		return invalid("count " + err.Error())
	}
	return checkReserved("count", path)
}

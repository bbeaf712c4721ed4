package recipes

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

var (
	// Mutex is a lock of one holder.
	Mutex = &manager.Recipe{Name: "mutex", Rule: queue.Mutex(), Kinds: []string{"exclusive"}, NewActor: newLock}
	// ReadWrite is a lock of one writer or many readers.
	ReadWrite = &manager.Recipe{Name: "read-write lock", Rule: queue.ReadWrite(), Kinds: []string{"write", "read"},
		KindNumbers: []messages.Kind{queue.Exclusive: messages.Kind_WRITE, queue.Shared: messages.Kind_READ}, NewActor: newLock}
)

// LeaderLatch is a Mutex with the node names of Curator's LeaderLatch.
var LeaderLatch = Custom("leader latch", queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0)}, Markers: []string{queue.LatchMarker}}, Mutex.Kinds)

var requestQueue = &manager.Recipe{Name: "semaphore's queue", Rule: queue.RequestQueue(), Kinds: []string{"exclusive", "shared", "own"},
	OwnsParent: true} // the leases are not made before: their parent exists

// lastSemaphore is the recipe that Semaphore has made last without a countPath: most programs have
// many semaphores of the same number of permits.
var lastSemaphore atomic.Pointer[manager.Recipe]

// Semaphore returns the recipe of a semaphore with so many permits. If countPath is not "", the
// node there says how many, and permits is the first value of a missing node. Nothing may write to
// the recipe.
func Semaphore(permits int, countPath string) *manager.Recipe {
	if last := lastSemaphore.Load(); countPath == "" && last != nil && last.Permits == permits {
		return last
	}
	r := &manager.Recipe{Name: fmt.Sprintf("semaphore of %d", permits), Kinds: []string{"permit"}, NewActor: newSemaphore,
		Permits: permits, MaxPermits: uint32(permits), CountPath: countPath}
	leases := permits
	if countPath != "" {
		r.Name, r.MaxPermits = "semaphore of as many as "+countPath+" says", math.MaxInt32
		leases = 0 // until the number is known
	}
	r.Directories = []manager.Directory{
		{Suffix: queue.RequestQueueSuffix, Recipe: requestQueue},
		{Suffix: queue.LeasesSuffix, Recipe: &manager.Recipe{Name: "semaphore's leases", Rule: queue.Leases(leases), Kinds: r.Kinds}},
	}
	if countPath == "" {
		lastSemaphore.Store(r)
	}
	return r
}

// Custom returns the recipe of a lock with a rule of the user. It keeps copies of all that the
// user may change.
func Custom(name string, rule queue.Rule, kinds []string) *manager.Recipe {
	rule.OwnMarkersOnly = true
	rule.BlockedBy, rule.Markers, rule.Reenter = slices.Clone(rule.BlockedBy), slices.Clone(rule.Markers), slices.Clone(rule.Reenter)
	r := &manager.Recipe{Name: name, Rule: rule, Kinds: slices.Clone(kinds), NewActor: newLock}
	if len(kinds) > 1 {
		for k := range kinds {
			r.KindNumbers = append(r.KindNumbers, messages.Kind(k+1))
		}
	}
	return r
}

// newDirectory returns the queue of the directory at a path.
func (ds *directories) newDirectory(path string, recipe *manager.Recipe, news func(requests.Effect)) directory {
	var in lockqueue.Incarnation
	rand.Read(in[:])
	d := directory{actor: ds, news: news, path: path, recipe: recipe, state: lockqueue.New(&recipe.Rule, in)}
	if ds.Recipe.RequireDirectory {
		d.required = ds.Path
		d.state.KeepDirectory()
	}
	return d
}

// incoming returns a request as a state machine takes it in.
func incoming(r *lock.Request, msg *messages.Acquire) requests.Incoming {
	return requests.Incoming{ID: r.ID, Owner: msg.Owner, Kind: r.Kind, Permits: int(max(msg.Permits, 1)), Try: msg.Try,
		NotifyContended: msg.NotifyContended, Revocable: msg.Revocable, Data: msg.Data}
}

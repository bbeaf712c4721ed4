package actors

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A member is lost while the release is on its way: the member's answer to that is only
// that nothing is held, but the owner is told why.
func TestMultiLockLostBeforeItsRelease(t *testing.T) {
	s := zktest.Embedded(t)
	locks, err := Connect(t.Context(), s.Addr(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	member := locks.Mutex("/a")
	multi := locks.MultiLock(member, locks.Mutex("/b"))
	actor, err := multi.entry()
	if err != nil {
		t.Fatal(err)
	}
	// A claim that is kept from hearing of its grant keeps the multi-lock's actor from
	// hearing of anything else.
	owner := &acquisition{handle: &multi.handle, entry: actor, ended: ErrReleased, release: ask.NewPromise[struct{}](nil)}
	owner.promise.Store(ask.NewPromise[*Grant](nil))
	owner.mu.Lock()
	ask.Send(actor.self, &messages.Acquire{Revocable: true}, owner)
	zktest.Eventually(t, 10*time.Second, func() bool { return s.Watches(t) == 2 }, "both members watch their nodes")
	owner.sendRelease()
	if err := s.Client(t).Delete("/a/"+s.Nodes(t, "/a")[0], -1); err != nil {
		t.Fatal(err)
	}
	next, err := member.Lock(t.Context()) // the member has told of the loss before
	if err != nil {
		t.Fatal(err)
	}
	owner.mu.Unlock()
	if _, err := owner.release.Future().Wait(t.Context()); !errors.Is(err, ErrNodeDeleted) {
		t.Errorf("the release: %v", err)
	}
	if err := next.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Requests that have failed leave nothing behind in the actors: not in the multi-lock's, nor
// in those of its members, in whatever way they have failed.
func TestMultiLockLeavesNothingBehind(t *testing.T) {
	s := zktest.Embedded(t)
	locks, err := Connect(t.Context(), s.Addr(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	var actors []host.Actor
	recorded := func(r recipe) *recipe {
		make := r.newActor
		r.newActor = func(of *actorEntry) host.Actor {
			a := make(of)
			actors = append(actors, a)
			return a
		}
		return &r
	}
	gate, lease := recorded(*requestQueueRecipe), recorded(*leasesRecipe(1))
	permit := locks.Semaphore("/s", 1)
	permit.recipe = recorded(*permit.recipe)
	permit.recipe.deps = []dependency{{suffix: requestQueueSuffix, recipe: gate}, {suffix: leaseSuffix, recipe: lease}}
	x, y := locks.Mutex("/x"), locks.Mutex("/y")
	x.recipe, y.recipe = recorded(*x.recipe), recorded(*y.recipe)
	all := map[*MultiLock]*handle{
		locks.MultiLock(x, y):         &x.handle,
		locks.MultiLock(y, x, permit): &x.handle,
		locks.MultiLock(x, permit):    &permit.handle,
	}
	for multi, blocked := range all {
		multi.recipe = recorded(*multi.recipe)
		g, err := blocked.Lock(t.Context(), WithOwner("me"))
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			f := multi.Acquire(t.Context())
			f.Cancel()
			if _, err := f.Wait(t.Context()); err == nil {
				t.Error("granted")
			}
			for _, options := range [][]Option{{Try()}, {WithOwner("me")}, {WithTimeout(time.Millisecond)}} {
				if _, err := multi.Lock(t.Context(), options...); err == nil {
					t.Error("granted")
				}
			}
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		for range 2 {
			g, err := multi.Lock(t.Context(), WithOwner("me"))
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	if len(actors) != 8 {
		t.Errorf("%d actors", len(actors))
	}
	for _, a := range actors {
		var left []int
		switch a := a.(type) {
		case *lock:
			left = []int{len(a.atomicCreates), a.requests.Len(), len(a.ids)}
		case *semaphoreActor:
			left = []int{a.requests.Len(), len(a.ids)}
			if !a.state.Idle() || a.atomicCreate != nil {
				t.Errorf("%s: it is not idle", a.path)
			}
		case *multiLock:
			left = []int{len(a.attempts), len(a.byID), len(a.byOwner), a.requests.Len(), len(a.ids)}
		}
		if slices.Max(left) > 0 {
			t.Errorf("a %T has entries left: %v", a, left)
		}
	}
}

// deaf is a recipient that hears nothing.
type deaf struct{}

func (deaf) Tell(any) {}

// A request waits for the node of another request of its owner, for a larger multi-lock. That
// one ends before its nodes are made: the first has not been cancelled, and begins anew.
func TestMultiLockOutlivesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		locks, err := Connect(t.Context(), "embedded:1", Config{Dial: s.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		member := locks.Mutex("/a")
		lock, err := member.entry()
		if err != nil {
			t.Fatal(err)
		}
		larger := &atomicCreate{bridge: locks.manager.zk.Bridge, number: lastAtomicCreate.Add(1), owner: "me", members: 2, unreported: 2}
		ask.Send(lock.self, acquireMember{&messages.Acquire{RequestId: 1, Owner: "me"}, larger, false}, deaf{})
		synctest.Wait() // that member has handed in its node, the other has not
		waiting := locks.MultiLock(member).Acquire(t.Context(), WithOwner("me"))
		synctest.Wait()
		larger.abort()
		ask.Send(lock.self, &messages.Cancel{RequestId: 1}, deaf{})
		g, err := waiting.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

package recipes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestReentrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		mu, same := locks.Mutex(b.LockPath), locks.Mutex(b.LockPath)
		me := actors.WithOwner("me")
		first := locktest.Lock(t, mu, me)
		var levels []*actors.Grant
		for range 2 {
			g := locktest.Lock(b, same, me)
			if g.Token() != first.Token() || g.Node() != first.Node() {
				b.Errorf("re-entry has token %v of %s, not %v of %s", g.Token(), g.Node(), first.Token(), first.Node())
			}
			levels = append(levels, g)
		}
		if n := b.LockNodes(); len(n) != 1 {
			b.Errorf("one owner has nodes %v", n)
		}
		// A try of the owner enters again. A request without a name has an owner of its own.
		locktest.Unlock(b, locktest.Lock(b, mu, me, actors.Try()))
		waiting := mu.Acquire(locktest.Within(b), actors.WithOwner("other"))
		b.WaitNodes(2)
		for _, g := range levels {
			locktest.Unlock(b, g)
			locktest.Pending(b, waiting)
		}
		locktest.Unlock(b, first)
		g := locktest.Result(b, waiting)
		locktest.ExpectIncreasing(b, first.Token(), g.Token())
		_, err := mu.Lock(locktest.Within(b), me, actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, g)
	})
}

func TestManyGoroutines(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) { b.PassAround(100, 20, b.Mutex()) })
}

func TestManyConnections(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) { b.PassAround(24, 20, b.Mutex(), b.Mutex(), b.Mutex()) })
}

// Two sessions of one process use several paths.
func TestManyPaths(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, two := b.Locks(), b.Locks()
		var wg sync.WaitGroup
		for i := range 8 {
			path := fmt.Sprintf("%s/deep/%d", b.LockPath, i)
			wg.Go(func() { b.PassAround(6, 5, one.Mutex(path), two.Mutex(path)) })
		}
		wg.Wait()
		if !b.KnowsContainers() {
			return // the directories stay
		}
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.LockNodes()) == 0 }, "the containers are deleted: %v", b.LockNodes())
	})
}

// Requests of all processes are granted in the order of their nodes.
func TestFairness(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mus := []*actors.Mutex{b.Mutex(), b.Mutex(), b.Mutex()}
		holder := locktest.Lock(b, mus[0])
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for i := range 15 {
			f := mus[i*7%3].Acquire(locktest.Within(b))
			b.WaitNodes(i + 2)
			wg.Go(func() {
				g, err := f.Result()
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				order = append(order, g.Node())
				mu.Unlock()
				g.Release()
			})
		}
		locktest.Unlock(b, holder)
		wg.Wait()
		if !slices.IsSortedFunc(order, locktest.BySequence) {
			b.Errorf("granted in the order %v", order)
		}
	})
}

// Requests that one goroutine makes one after the other are granted in that order.
func TestOrderOfOneGoroutine(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		holder, mu := b.Mutex(), b.Mutex()
		locktest.Unlock(b, locktest.Lock(b, mu))
		for range 10 {
			g := locktest.Lock(b, holder)
			var fs []*actors.Future[*actors.Grant]
			for range 10 {
				fs = append(fs, mu.Acquire(locktest.Within(b)))
			}
			b.WaitNodes(11)
			locktest.Unlock(b, g)
			for i, f := range fs {
				g, err := f.Wait(locktest.Within(b))
				if err != nil {
					b.Fatalf("request %d is not granted in its turn: %v", i, err)
				}
				locktest.Unlock(b, g)
			}
		}
	})
}

func TestNodeAndToken(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath), actors.WithData([]byte("the holder")))
		if g.Path() != b.LockPath || !strings.HasPrefix(g.Node(), b.LockPath+"/_c_") || !strings.Contains(g.Node(), "-lock-") {
			b.Errorf("path %s, node %s", g.Path(), g.Node())
		}
		data, stat, err := b.Client(b).Get(g.Node())
		locktest.Must(b, err)
		if string(data) != "the holder" {
			b.Errorf("data %q", data)
		}
		if stat.Czxid != g.Token().Czxid || stat.EphemeralOwner != g.Session() || g.Session() != locks.Session().ID {
			b.Errorf("%v, session %#x: %+v", g.Token(), g.Session(), stat)
		}
		locktest.Unlock(b, g)
	})
}

// The time-out and the context of a request bound its wait, and not the grant.
func TestOnlyTheWaitIsBounded(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		ctx, cancel := context.WithCancel(v.Context())
		g, err := v.Mutex().Lock(ctx, actors.WithTimeout(50*time.Millisecond))
		locktest.Must(v, err)
		cancel()
		<-time.After(time.Hour)
		if g.Err() != nil {
			v.Error(g.Err())
		}
		locktest.Unlock(v, g)
	})
}

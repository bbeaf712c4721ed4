package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestReentrant(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, same := locks.Mutex(b.path), locks.Mutex(b.path)
		me := actors.WithOwner("me")
		first := lock(t, mu, me)
		var levels []*actors.Grant
		for range 2 {
			g := lock(b, same, me)
			if g.Token() != first.Token() || g.Node() != first.Node() {
				b.Errorf("re-entry has token %v of %s, not %v of %s", g.Token(), g.Node(), first.Token(), first.Node())
			}
			levels = append(levels, g)
		}
		if n := b.nodes(); len(n) != 1 {
			b.Errorf("one owner has nodes %v", n)
		}
		// A try of the owner enters again. A request without a name has an owner of its own.
		unlock(b, lock(b, mu, me, actors.Try()))
		waiting := mu.Acquire(within(b), actors.WithOwner("other"))
		b.waitNodes(2)
		for _, g := range levels {
			unlock(b, g)
			pending(b, waiting)
		}
		unlock(b, first)
		g := result(b, waiting)
		expectIncreasing(b, first.Token(), g.Token())
		_, err := mu.Lock(within(b), me, actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
	})
}

// The grants of one owner may be released in any order.
func TestReentrantReleasedFirst(t *testing.T) {
	each(t, func(b *testLock) {
		mu, me := b.mutex(), actors.WithOwner("me")
		first, second := lock(b, mu, me), lock(b, mu, me)
		unlock(b, first)
		if second.Err() != nil || len(b.nodes()) != 1 {
			b.Errorf("%v, nodes %v", second.Err(), b.nodes())
		}
		unlock(b, second)
		b.waitNodes(0)
	})
}

// The waiting requests of one owner are granted together.
func TestOwnerWaitsTwice(t *testing.T) {
	each(t, func(b *testLock) {
		mu, me := b.mutex(), actors.WithOwner("me")
		holder := lock(b, mu)
		one, two, third := mu.Acquire(within(b), me), mu.Acquire(within(b), me), mu.Acquire(within(b), me)
		b.waitNodes(2)
		third.Cancel()
		unlock(b, holder)
		g, h := result(b, one), result(b, two)
		if g.Token() != h.Token() {
			b.Errorf("tokens %v and %v", g.Token(), h.Token())
		}
		unlock(b, h)
		unlock(b, g)
	})
}

func Test2Clients(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.mutex(), b.mutex()
		token := actors.Token{}
		for range 3 {
			for _, pair := range [][2]*actors.Mutex{{one, two}, {two, one}} {
				g := lock(b, pair[0])
				waiting := pair[1].Acquire(within(b))
				b.waitNodes(2)
				pending(b, waiting)
				must(b, g.Unlock(within(b)))
				h := result(b, waiting)
				expectIncreasing(b, token, g.Token(), h.Token())
				token = h.Token()
				unlock(b, h)
			}
		}
	})
}

func TestManyGoroutines(t *testing.T) {
	each(t, func(b *testLock) { b.passAround(100, 20, b.mutex()) })
}

func TestManyConnections(t *testing.T) {
	each(t, func(b *testLock) { b.passAround(24, 20, b.mutex(), b.mutex(), b.mutex()) })
}

// Two sessions of one process use several paths.
func TestManyPaths(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.locks(), b.locks()
		var wg sync.WaitGroup
		for i := range 8 {
			path := fmt.Sprintf("%s/deep/%d", b.path, i)
			wg.Go(func() { b.passAround(6, 5, one.Mutex(path), two.Mutex(path)) })
		}
		wg.Wait()
		zktest.Eventually(b, timeLimit, func() bool { return len(b.nodes()) == 0 }, "the containers are deleted: %v", b.nodes())
	})
}

// Requests of all processes are granted in the order of their nodes.
func TestFairness(t *testing.T) {
	each(t, func(b *testLock) {
		mus := []*actors.Mutex{b.mutex(), b.mutex(), b.mutex()}
		holder := lock(b, mus[0])
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for i := range 15 {
			f := mus[i*7%3].Acquire(within(b))
			b.waitNodes(i + 2)
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
		unlock(b, holder)
		wg.Wait()
		if !slices.IsSortedFunc(order, bySequence) {
			b.Errorf("granted in the order %v", order)
		}
	})
}

// Requests that one goroutine makes one after the other are granted in that order.
func TestOrderOfOneGoroutine(t *testing.T) {
	each(t, func(b *testLock) {
		holder, mu := b.mutex(), b.mutex()
		unlock(b, lock(b, mu))
		for range 10 {
			g := lock(b, holder)
			var fs []*actors.Future[*actors.Grant]
			for range 10 {
				fs = append(fs, mu.Acquire(within(b)))
			}
			b.waitNodes(11)
			unlock(b, g)
			for i, f := range fs {
				g, err := f.Wait(within(b))
				if err != nil {
					b.Fatalf("request %d is not granted in its turn: %v", i, err)
				}
				unlock(b, g)
			}
		}
	})
}

func TestNodeAndToken(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		g := lock(b, locks.Mutex(b.path), actors.WithData([]byte("the holder")))
		if g.Path() != b.path || !strings.HasPrefix(g.Node(), b.path+"/_c_") || !strings.Contains(g.Node(), "-lock-") {
			b.Errorf("path %s, node %s", g.Path(), g.Node())
		}
		data, stat, err := b.Client(b).Get(g.Node())
		must(b, err)
		if string(data) != "the holder" {
			b.Errorf("data %q", data)
		}
		if stat.Czxid != g.Token().Czxid || stat.EphemeralOwner != g.Session() || g.Session() != locks.Session().ID {
			b.Errorf("%v, session %#x: %+v", g.Token(), g.Session(), stat)
		}
		unlock(b, g)
	})
}

func TestTry(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, elsewhere := locks.Mutex(b.path), b.mutex()
		g := lock(b, mu, actors.Try())
		_, err := mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		_, err = elsewhere.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		if err == nil || !strings.Contains(err.Error(), b.path) {
			b.Errorf("the error does not name the path: %v", err)
		}
		b.waitNodes(1)
		unlock(b, g)
		unlock(b, lock(b, elsewhere, actors.Try()))
		unlock(b, lock(b, mu, actors.Try()))
	})
}

// Many goroutines try at one time, on several connections. At most one holds.
func TestTryMany(t *testing.T) {
	each(t, func(b *testLock) {
		mus := []*actors.Mutex{b.mutex(), b.mutex()}
		for range 5 {
			grants := make(chan *actors.Grant, 20)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					g, err := mus[i%2].Lock(within(b), actors.Try())
					if err == nil {
						grants <- g
						return
					}
					is(b, err, actors.ErrNotAcquired)
				})
			}
			wg.Wait()
			if len(grants) > 1 {
				b.Fatalf("%d hold the lock", len(grants))
			}
			b.waitNodes(len(grants))
			if len(grants) == 1 {
				unlock(b, <-grants)
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, elsewhere := locks.Mutex(b.path), b.mutex()
		g := lock(b, mu)
		for _, other := range []*actors.Mutex{mu, elsewhere} {
			begun := time.Now()
			_, err := other.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
			is(b, err, actors.ErrTimedOut)
			if err == nil || !strings.Contains(err.Error(), "50ms") {
				b.Errorf("the error does not name the timeout: %v", err)
			}
			if took := time.Since(begun); took < 50*time.Millisecond {
				b.Errorf("timed out after %v", took)
			}
			b.waitNodes(1)
		}
		unlock(b, g)
	})
}

func TestTimeoutBoundsTheWaitOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		g := lock(v, mu, actors.WithTimeout(50*time.Millisecond))
		<-time.After(time.Hour)
		if g.Err() != nil {
			v.Error(g.Err())
		}
		unlock(v, g)
	})
}

func TestContextEnds(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, elsewhere := locks.Mutex(b.path), b.mutex()
		g := lock(b, mu)
		for _, other := range []*actors.Mutex{mu, elsewhere} {
			ctx, cancel := context.WithTimeout(b.Context(), 30*time.Millisecond)
			_, err := other.Lock(ctx)
			cancel()
			is(b, err, context.DeadlineExceeded)

			cause := errors.New("the reason")
			ctx2, cancel2 := context.WithCancelCause(b.Context())
			f := other.Acquire(ctx2)
			b.waitNodes(2)
			cancel2(cause)
			is(b, failure(b, f), cause)
			b.waitNodes(1)
		}
		unlock(b, g)
		// The context limits the wait, and not the grant.
		ctx, cancel := context.WithCancel(b.Context())
		g, err := mu.Lock(ctx)
		must(b, err)
		cancel()
		unlock(b, lock(b, locks.Mutex(b.path+"/other")))
		if g.Err() != nil || len(b.nodes()) == 0 {
			b.Error(g.Err())
		}
		unlock(b, g)
	})
}

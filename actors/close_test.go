package actors_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Close comes while goroutines acquire and release. All requests end.
func TestCloseInTheMiddle(t *testing.T) {
	each(t, func(b *testLock) {
		for range 4 {
			locks := b.locks(idle(time.Millisecond))
			var wg sync.WaitGroup
			for i := range 20 {
				mu := locks.Mutex(fmt.Sprint(b.path, "-", i%3))
				wg.Go(func() {
					for {
						g, err := mu.Lock(within(b))
						if err != nil {
							is(b, err, actors.ErrClosed)
							return
						}
						if err := g.Unlock(within(b)); err != nil {
							is(b, err, actors.ErrClosed)
						}
					}
				})
			}
			<-time.After(rand.N(40 * time.Millisecond))
			for range 2 {
				wg.Go(func() {
					if err := locks.Close(); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			for i := range 3 {
				if nodes := b.Nodes(b, fmt.Sprint(b.path, "-", i)); len(nodes) != 0 {
					b.Errorf("nodes are left: %v", nodes)
				}
			}
		}
	})
}

// Several Locks share a protoactor system; closing one leaves the others alone.
func TestCloseOneOfTwo(t *testing.T) {
	each(t, func(b *testLock) {
		config, _ := testActors(b.T, 0)
		one, two := b.locks(config), b.locks(config)
		g := lock(b, two.Mutex(b.path))
		f := one.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		must(b, one.Close())
		is(b, failure(b, f), actors.ErrClosed)
		if g.Err() != nil {
			b.Error(g.Err())
		}
		b.waitNodes(1)
		unlock(b, g)
	})
}

func TestLimits(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.MaxRequests, cfg.MaxNodeData = 2, 3, 10 })
		mu, other := locks.Mutex(b.path), locks.Mutex(b.path+"-other")
		for range 3 {
			g := lock(b, mu, actors.WithData(make([]byte, 10)))
			f := mu.Acquire(within(b))
			b.waitNodes(2)
			_, err := mu.Lock(within(b))
			is(b, err, actors.ErrLimit)
			h := lock(b, other)
			_, err = other.Lock(within(b))
			is(b, err, actors.ErrLimit)
			_, err = other.Lock(within(b), actors.WithData(make([]byte, 11)))
			is(b, err, actors.ErrLimit)
			unlock(b, h)
			f.Cancel()
			is(b, failure(b, f), actors.ErrCancelled)
			unlock(b, g)
		}
		// A lost grant counts until it is released.
		g := lock(b, mu, actors.WithOwner("me"))
		b.expire(locks)
		closes(b, g.Done(), "the grant")
		g.Release()
		unlock(b, lock(b, mu))
		zktest.Eventually(b, timeLimit, func() bool { return len(b.nodes()) == 0 }, "no node is left")
	})
}

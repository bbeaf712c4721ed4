package api

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Close comes while goroutines acquire and release. All requests end.
func TestCloseInTheMiddle(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		for range 4 {
			locks := b.Locks(locktest.IdleTimeout(time.Millisecond))
			var wg sync.WaitGroup
			for i := range 20 {
				mu := locks.Mutex(fmt.Sprint(b.LockPath, "-", i%3))
				wg.Go(func() {
					for {
						g, err := mu.Lock(locktest.Within(b))
						if err != nil {
							locktest.Is(b, err, actors.ErrClosed)
							return
						}
						if err := g.Unlock(locktest.Within(b)); err != nil {
							locktest.Is(b, err, actors.ErrClosed)
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
				if nodes := b.Nodes(b, fmt.Sprint(b.LockPath, "-", i)); len(nodes) != 0 {
					b.Errorf("nodes are left: %v", nodes)
				}
			}
		}
	})
}

// Several Locks share a protoactor system; closing one leaves the others alone.
func TestCloseOneOfTwo(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, _ := locktest.OwnerActors(b.T, 0)
		one, two := b.Locks(config), b.Locks(config)
		g := locktest.Lock(b, two.Mutex(b.LockPath))
		f := one.Mutex(b.LockPath).Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Must(b, one.Close())
		locktest.Is(b, locktest.Failure(b, f), actors.ErrClosed)
		if g.Err() != nil {
			b.Error(g.Err())
		}
		b.WaitNodes(1)
		locktest.Unlock(b, g)
	})
}

func TestLimits(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.MaxRequests, cfg.MaxNodeData = 2, 3, 10 })
		mu, other := locks.Mutex(b.LockPath), locks.Mutex(b.LockPath+"-other")
		for range 3 {
			g := locktest.Lock(b, mu, actors.WithData(make([]byte, 10)))
			f := mu.Acquire(locktest.Within(b))
			b.WaitNodes(2)
			_, err := mu.Lock(locktest.Within(b))
			locktest.Is(b, err, actors.ErrLimit)
			h := locktest.Lock(b, other)
			_, err = other.Lock(locktest.Within(b))
			locktest.Is(b, err, actors.ErrLimit)
			_, err = other.Lock(locktest.Within(b), actors.WithData(make([]byte, 11)))
			locktest.Is(b, err, actors.ErrLimit)
			locktest.Unlock(b, h)
			f.Cancel()
			locktest.Is(b, locktest.Failure(b, f), actors.ErrCancelled)
			locktest.Unlock(b, g)
		}
		// A lost grant counts until it is released.
		g := locktest.Lock(b, mu, actors.WithOwner("me"))
		b.ExpireSession(locks)
		locktest.Closes(b, g.Done(), "the grant")
		g.Release()
		locktest.Unlock(b, locktest.Lock(b, mu))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.LockNodes()) == 0 }, "no node is left")
	})
}

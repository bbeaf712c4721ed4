package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestClose(t *testing.T) {
	each(t, func(b *bed) {
		locks, other := b.locks(), b.mutex()
		mu := locks.Mutex(b.path)
		g := lock(b, mu, actors.WithOwner("me"))
		ctx := g.Context(b.Context())
		waiting, timed := mu.Acquire(context.Background()), mu.Acquire(within(b), actors.WithTimeout(time.Hour))
		b.waitNodes(3)
		creating := mu.Acquire(context.Background())
		elsewhere := locks.Mutex(b.path + "-new").Acquire(context.Background())
		must(b, locks.Close())
		for _, f := range []*actors.Future[*actors.Grant]{waiting, timed, creating, elsewhere} {
			if !isClosed(f.Done()) {
				b.Error("a request is pending after Close")
			}
			if g, err := f.Result(); err == nil { // elsewhere may have been granted
				is(b, g.Err(), actors.ErrClosed)
			} else {
				is(b, err, actors.ErrClosed)
			}
		}
		is(b, g.Err(), actors.ErrClosed)
		is(b, context.Cause(ctx), actors.ErrClosed)
		is(b, failure(b, g.Release()), actors.ErrClosed)
		is(b, g.Unlock(within(b)), actors.ErrNotHeld)
		if nodes := b.nodes(); len(nodes) != 0 {
			b.Errorf("Close has left %v", nodes)
		}
		unlock(b, lock(b, other))
		must(b, locks.Close())
		for _, late := range []*actors.Mutex{mu, locks.Mutex(b.path), locks.Mutex(b.path + "-later")} {
			_, err := late.Lock(within(b))
			is(b, err, actors.ErrClosed)
			_, err = late.PID()
			is(b, err, actors.ErrClosed)
		}
	})
}

// A release that ZooKeeper has not confirmed ends with Close, too.
func TestCloseDuringRelease(t *testing.T) {
	onEmbedded(t, func(b *bed) {
		locks := b.locks()
		g := lock(b, locks.Mutex(b.path))
		b.Embedded().Inject(embedded.Fault{Op: embedded.OpDelete, Action: embedded.DelayRequest, Delay: 200 * time.Millisecond})
		f := g.Release()
		must(b, locks.Close())
		if _, err := f.Wait(within(b)); err != nil {
			is(b, err, actors.ErrClosed)
		}
	})
}

// Close comes while everything is going on. All that was asked for ends.
func TestCloseInTheMiddle(t *testing.T) {
	besides(t, func(b *bed) {
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
					b.Errorf("left: %v", nodes)
				}
			}
		}
	})
}

// Several Locks share a protoactor system; closing one leaves the others alone.
func TestCloseOneOfTwo(t *testing.T) {
	each(t, func(b *bed) {
		config, _ := parties(b.T, 0)
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
	besides(t, func(b *bed) {
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
		// What was lost counts until it is released.
		g := lock(b, mu, actors.WithOwner("me"))
		b.expire(locks)
		closes(b, g.Done(), "the grant")
		g.Release()
		unlock(b, lock(b, mu))
		zktest.Eventually(b, patience, func() bool { return len(b.nodes()) == 0 }, "nothing is left")
	})
}

func TestStopOnSuspended(t *testing.T) {
	besides(t, func(b *bed) {
		proxy := zktest.Proxy(b, b.Addr())
		strict := connect(b.T, proxy.Addr(), func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		lax := connect(b.T, proxy.Addr())
		g, h := lock(b, strict.Mutex(b.path)), lock(b, lax.Mutex(b.path+"-lax"))
		ctx, other := g.Context(b.Context()), h.Context(b.Context())
		proxy.Refuse(true)
		proxy.Cut()
		closes(b, ctx.Done(), "the context")
		is(b, context.Cause(ctx), actors.ErrSuspended)
		meanwhile := g.Context(b.Context())
		if g.Err() != nil || h.Err() != nil || other.Err() != nil {
			b.Errorf("%v, %v, %v", g.Err(), h.Err(), other.Err())
		}
		proxy.Refuse(false)
		zktest.Eventually(b, patience, func() bool { return strict.Session().State == messages.SessionState_CONNECTED }, "connected again")
		again := g.Context(b.Context())
		if again.Err() != nil || !errors.Is(context.Cause(meanwhile), actors.ErrSuspended) && meanwhile.Err() != nil {
			b.Errorf("%v, %v", again.Err(), context.Cause(meanwhile))
		}
		unlock(b, g)
		unlock(b, h)
		is(b, context.Cause(again), actors.ErrReleased)
	})
}

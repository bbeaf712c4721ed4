package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// demonstrate lets the workers of three sessions use some locks, for the page to show. stop ends
// the workers.
func demonstrate(ctx context.Context, servers string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	var opened []*actors.Locks
	stop = func() {
		cancel()
		for _, locks := range opened {
			locks.Close()
		}
		working.Wait()
	}
	for _, service := range []string{"billing", "shipping", "reports"} {
		locks, err := actors.Connect(ctx, servers, actors.Config{})
		if err != nil {
			stop()
			return nil, err
		}
		opened = append(opened, locks)
		for i := range 4 {
			owner := actors.WithOwner(actors.Owner(fmt.Sprintf("%s-%d", service, i+1)))
			working.Go(func() { work(ctx, locks, owner) })
		}
	}
	for _, locks := range opened {
		working.Go(func() { consume(ctx, locks) })
	}
	return stop, nil
}

// consume shares the shards of a queue, and leaves and comes back from time to time.
func consume(ctx context.Context, locks *actors.Locks) {
	shards := locks.Partitions("/demo/shards", 48)
	for n := 1; ctx.Err() == nil; n++ {
		joined, leave := context.WithTimeout(ctx, 10*time.Second+rand.N(20*time.Second))
		shards.Join(joined, fmt.Appendf(nil, "consumer-%d", n), func(term *actors.PartitionTerm) { <-term.Context().Done() })
		leave()
		pause(ctx, 3*time.Second, nil)
	}
}

// work acquires one lock after the other, and holds each for some seconds.
func work(ctx context.Context, locks *actors.Locks, owner actors.Option) {
	orders, stock, tapes := locks.Mutex("/demo/orders"), locks.RWMutex("/demo/stock"), locks.Semaphore("/demo/tapes", 2)
	for ctx.Err() == nil {
		lock := []interface {
			Lock(context.Context, ...actors.Option) (*actors.Grant, error)
		}{orders, stock.Read(), stock.Read(), stock.Write(), tapes, tapes, locks.Mutex(fmt.Sprintf("/demo/customers/%d", rand.N(5)+1))}[rand.N(7)]
		grant, err := lock.Lock(ctx, owner)
		if err != nil {
			continue
		}
		pause(ctx, 500*time.Millisecond+rand.N(3*time.Second), nil)
		grant.Unlock(ctx)
	}
}

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
)

const futureLocks = 100

func init() { specials["futures"] = measureFutures }

// futureWaiters are the goroutines that wait in scenario futures.
type futureWaiters struct {
	mutexes  []*actors.Mutex
	sections []section
	shutdown chan struct{}

	violations atomic.Int64
	mu         sync.Mutex
	granted    histogram
	err        error
	start      atomic.Int64 // instant at which the locks were released
}

func measureFutures(w *worker, m message) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), specialLimit)
	defer cancel()
	locks, err := actors.Connect(ctx, w.addr, actors.Config{SessionTimeout: sessionTimeout})
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	c := &futureWaiters{sections: make([]section, futureLocks), shutdown: make(chan struct{})}
	var held []*actors.Grant
	for i := range futureLocks {
		c.mutexes = append(c.mutexes, locks.Mutex(fmt.Sprintf("%s/%d", m.args["path"], i), actorlockModes[w.peer.name]...))
		grant, err := c.mutexes[i].Lock(ctx)
		if err != nil {
			return nil, err
		}
		held = append(held, grant)
	}
	queued, waiting, err := c.queueAll(ctx, w.addr)
	if err != nil {
		close(c.shutdown)
		return nil, err
	}
	c.start.Store(now())
	for _, grant := range held {
		grant.Release()
	}
	waiting.Wait()
	took := time.Duration(now() - c.start.Load())
	return map[string]float64{
		"ops_per_sec":    pendingWaiters / took.Seconds(),
		"p50_us":         micros(c.granted.percentile(50)),
		"p99_us":         micros(c.granted.percentile(99)),
		"violations":     float64(c.violations.Load()),
		"queued_per_sec": pendingWaiters / queued.Seconds(),
	}, c.err
}

// queueAll starts the goroutines, and returns how long it took until all were in the queue.
func (c *futureWaiters) queueAll(ctx context.Context, addr string) (time.Duration, *sync.WaitGroup, error) {
	var waiting sync.WaitGroup
	start := time.Now()
	for i := range pendingWaiters {
		waiting.Go(func() {
			if err := c.wait(ctx, i); err != nil {
				c.mu.Lock()
				c.err = err
				c.mu.Unlock()
			}
		})
	}
	for _, mu := range c.mutexes {
		if err := awaitContenders(ctx, addr, mu.Path(), 1+pendingWaiters/futureLocks); err != nil {
			return 0, nil, err
		}
	}
	return time.Since(start), &waiting, nil
}

func (c *futureWaiters) wait(ctx context.Context, i int) error {
	pending := c.mutexes[i%futureLocks].Acquire(ctx)
	select {
	case <-pending.Done():
	case <-c.shutdown:
		pending.Cancel()
		return nil
	}
	grant, err := pending.Result()
	if err != nil {
		return err
	}
	section, me := &c.sections[i%futureLocks], holderID(0, i)
	if !section.enter(me) {
		c.violations.Add(1)
	}
	c.mu.Lock()
	c.granted.add(now() - c.start.Load())
	c.mu.Unlock()
	section.leave(me)
	grant.Release()
	return nil
}

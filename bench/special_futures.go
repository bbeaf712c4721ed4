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

// crowd is who waits in scenario futures.
type crowd struct {
	mutexes  []*actors.Mutex
	gates    []gate
	shutdown chan struct{}

	violations atomic.Int64
	mu         sync.Mutex
	granted    histogram
	err        error
	start      atomic.Int64 // when the locks were released
}

func measureFutures(w *worker, m message) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	locks, err := actors.Connect(ctx, w.addr, actors.Config{SessionTimeout: sessionTimeout})
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	c := &crowd{gates: make([]gate, futureLocks), shutdown: make(chan struct{})}
	var held []*actors.Grant
	for i := range futureLocks {
		c.mutexes = append(c.mutexes, locks.Mutex(fmt.Sprintf("%s/%d", m.args["path"], i), actorlockModes[w.peer.name]...))
		grant, err := c.mutexes[i].Lock(ctx)
		if err != nil {
			return nil, err
		}
		held = append(held, grant)
	}
	queued, waiting, err := c.gather(ctx, w.addr)
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

// gather starts those who wait, and tells how long it took until all were queued.
func (c *crowd) gather(ctx context.Context, addr string) (time.Duration, *sync.WaitGroup, error) {
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

func (c *crowd) wait(ctx context.Context, i int) error {
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
	gate, me := &c.gates[i%futureLocks], holderID(0, i)
	if !gate.enter(me) {
		c.violations.Add(1)
	}
	c.mu.Lock()
	c.granted.add(now() - c.start.Load())
	c.mu.Unlock()
	gate.leave(me)
	grant.Release()
	return nil
}

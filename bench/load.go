package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// loaded is a load whose clients have their locks, ready to run.
type loaded struct {
	clients []client
	free    func()
	window  window
	started atomic.Int64 // clients that have had the lock
	inside  func()       // what holders do, nil: nothing
}

// window is what counts, as instants.
type window struct{ from, until atomic.Int64 }

type client struct {
	id     int64
	shared bool // other processes take part: hand-offs count, not acquires
	places []place
	tally  tally
}

// place is a lock as one client uses it, and what checks it.
type place struct {
	recipe string // of access
	locker locker
	gate   *gate
	reader locker // the other side of a read-write lock
	turns  int
}

// side is what a turn uses.
func (p *place) side() (locker, string) {
	p.turns++
	if p.reader != nil && p.turns%writesOf != 0 {
		return p.reader, readSide
	}
	return p.locker, p.recipe
}

func (l load) prepare(ctx context.Context, d driver) (*loaded, error) {
	gates, free, err := openGates(l.gates, l.locks)
	if err != nil {
		return nil, err
	}
	ready := &loaded{clients: make([]client, l.clients), free: free}
	if l.hold > 0 {
		ready.inside = func() { time.Sleep(l.hold) }
	}
	for i := range ready.clients {
		c := &ready.clients[i]
		c.id, c.shared = holderID(l.process, i), l.gates != ""
		for lock := i % l.locks; lock < l.locks; lock += l.clients {
			place, err := l.place(ctx, d, lock, i)
			if err != nil {
				free()
				return nil, err
			}
			place.gate = &gates[lock]
			c.places = append(c.places, place)
		}
	}
	return ready, nil
}

func (l load) place(ctx context.Context, d driver, lock, client int) (p place, err error) {
	a := access{fmt.Sprintf("%s/%d", l.path, lock), client, l.acknowledged, client % max(l.connections, 1), l.recipe}
	if l.recipe == readWrite {
		a.recipe = readSide
		if p.reader, err = d.lock(ctx, a); err != nil {
			return p, err
		}
		a.recipe = writeSide
	}
	p.turns, p.recipe = client, a.recipe // so that not all write at a time
	p.locker, err = d.lock(ctx, a)
	return p, err
}

// settleTime bounds the wait for every client to have had its turn.
const settleTime = 5 * time.Second

// run lets the clients work until the second instant, and counts from the first. To settle means to count, for as
// long, only from when every client has had its turn: queues have formed then, and directories exist. The first
// error ends it at once: a client of a peer that takes no context may be left waiting, so the process should end, too.
func (r *loaded) run(from, until int64, settle bool) (tally, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.window.from.Store(from)
	r.window.until.Store(until)
	if settle {
		r.window.from.Store(math.MaxInt64)
		r.window.until.Store(math.MaxInt64)
		go r.settle(from, until)
	}
	var running sync.WaitGroup
	for i := range r.clients {
		running.Go(func() {
			if err := r.work(ctx, &r.clients[i]); err != nil {
				cancel(err)
			}
		})
	}
	finished := make(chan struct{})
	go func() { running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		return tally{}, context.Cause(ctx)
	}
	var sum tally
	for i := range r.clients {
		sum.merge(r.clients[i].tally)
	}
	return sum, context.Cause(ctx)
}

// settle begins the measurement when everybody has had a turn. It looks from time to time: to be told by those who are
// measured would cost them something.
func (r *loaded) settle(from, until int64) {
	patience := time.Now().Add(settleTime)
	for now() < from || r.started.Load() < int64(len(r.clients)) && time.Now().Before(patience) {
		time.Sleep(time.Millisecond)
	}
	start := now()
	r.window.until.Store(start + until - from)
	r.window.from.Store(start)
}

func (r *loaded) work(ctx context.Context, c *client) (err error) {
	for i, now := 0, now(); now < r.window.until.Load() && ctx.Err() == nil && err == nil; i = (i + 1) % len(c.places) {
		now, err = r.turn(ctx, c, &c.places[i], now)
	}
	return err
}

// turn acquires and releases once. It begins at start, and gives when it has ended.
func (r *loaded) turn(ctx context.Context, c *client, p *place, start int64) (end int64, err error) {
	lock, recipe := p.side()
	if err := lock.acquire(ctx); err != nil {
		return 0, fmt.Errorf("acquire: %w", err)
	}
	if c.tally.total++; c.tally.total == 1 {
		r.started.Add(1)
	}
	if !p.gate.enterAs(recipe, c.id) {
		c.tally.violations++
	}
	counts, granted := true, int64(0)
	if c.shared {
		start, counts = p.gate.handedOver(c.id)
		granted = now()
	}
	if r.inside != nil {
		r.inside()
	}
	if c.shared {
		p.gate.handOver(c.id)
	}
	p.gate.leaveAs(recipe, c.id)
	if err := lock.release(ctx); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	end = now()
	done := end
	if c.shared {
		done = granted
	}
	if counts && done >= r.window.from.Load() && done < r.window.until.Load() {
		c.tally.ops++
		c.tally.latencies.add(done - start)
	}
	return end, nil
}

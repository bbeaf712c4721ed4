package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// prepared is a load that is ready to run.
type prepared interface {
	run(from, until int64, awaitTurns bool) (tally, error)
	free()
}

// loaded is a load whose clients have their lock handles.
type loaded struct {
	clients []client
	unmap   func() // ends the use of the file of sections
	window  window
	started atomic.Int64 // number of clients that have held a lock
	inside  func()       // called by each holder, unless nil
}

// window is the measured time, as instants.
type window struct{ from, until atomic.Int64 }

type client struct {
	id     int64
	shared bool // other processes take part: ops are hand-offs, not acquires
	uses   []lockUse
	tally  tally
}

// lockUse is one client's use of one lock.
type lockUse struct {
	recipe  string // as in access
	locker  locker
	section *section
	reader  locker // the read lock of a read-write lock; otherwise nil
	turns   int
	renewed func(context.Context) (locker, error) // if not nil, it returns the lock of the next turn, on a path of its own
}

// next returns the locker and the recipe of the next turn.
func (p *lockUse) next() (locker, string) {
	p.turns++
	if p.reader != nil && p.turns%writesOf != 0 {
		return p.reader, readMode
	}
	return p.locker, p.recipe
}

func (l load) prepare(ctx context.Context, d driver) (*loaded, error) {
	sections, unmap, err := openSections(l.sections, l.locks)
	if err != nil {
		return nil, err
	}
	ready := &loaded{clients: make([]client, l.clients), unmap: unmap}
	if l.hold > 0 {
		ready.inside = func() { time.Sleep(l.hold) }
	}
	for i := range ready.clients {
		c := &ready.clients[i]
		c.id, c.shared = holderID(l.process, i), l.sections != ""
		for lock := i % l.locks; lock < l.locks; lock += l.clients {
			use, err := l.use(ctx, d, lock, i)
			if err != nil {
				unmap()
				return nil, err
			}
			use.section = &sections[lock]
			c.uses = append(c.uses, use)
		}
	}
	return ready, nil
}

func (l load) use(ctx context.Context, d driver, lock, client int) (p lockUse, err error) {
	a := access{fmt.Sprintf("%s/%d", l.path, lock), client, l.acknowledged, client % max(l.connections, 1), l.recipe}
	if l.recipe == readWrite {
		a.recipe = readMode
		if p.reader, err = d.lock(ctx, a); err != nil {
			return p, err
		}
		a.recipe = writeMode
	}
	p.turns, p.recipe = client, a.recipe // clients write at different turns
	if turn := 0; l.fresh {
		p.renewed = func(ctx context.Context) (locker, error) {
			turn++
			b := a
			b.path = fmt.Sprintf("%s-%d", a.path, turn)
			return d.lock(ctx, b)
		}
		return p, nil
	}
	p.locker, err = d.lock(ctx, a)
	return p, err
}

func (r *loaded) free() { r.unmap() }

// turnsLimit is the longest wait until every client has held a lock.
const turnsLimit = 5 * time.Second

// run lets the clients work until the second instant, and counts from the first. With awaitTurns it counts, for the same
// time, only from the moment when every client has held a lock: queues have formed then, and directories exist. run returns
// at the first error, and may leave clients blocked that take no context, so that the process should end.
func (r *loaded) run(from, until int64, awaitTurns bool) (tally, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.window.from.Store(from)
	r.window.until.Store(until)
	if awaitTurns {
		r.window.from.Store(math.MaxInt64)
		r.window.until.Store(math.MaxInt64)
		go r.awaitTurns(from, until)
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

// awaitTurns begins the measurement when every client has held a lock. It polls, because a notification would cost the
// clients time.
func (r *loaded) awaitTurns(from, until int64) {
	deadline := time.Now().Add(turnsLimit)
	for now() < from || r.started.Load() < int64(len(r.clients)) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	start := now()
	r.window.until.Store(start + until - from)
	r.window.from.Store(start)
}

func (r *loaded) work(ctx context.Context, c *client) (err error) {
	for i, now := 0, now(); now < r.window.until.Load() && ctx.Err() == nil && err == nil; i = (i + 1) % len(c.uses) {
		now, err = r.turn(ctx, c, &c.uses[i], now)
	}
	return err
}

// turn acquires and releases once. It begins at the instant start, and returns the instant of its end.
func (r *loaded) turn(ctx context.Context, c *client, p *lockUse, start int64) (end int64, err error) {
	lock, recipe := p.next()
	if p.renewed != nil {
		if lock, err = p.renewed(ctx); err != nil {
			return 0, fmt.Errorf("make a lock: %w", err)
		}
	}
	if err := lock.acquire(ctx); err != nil {
		return 0, fmt.Errorf("acquire: %w", err)
	}
	if c.tally.total++; c.tally.total == 1 {
		r.started.Add(1)
	}
	if !p.section.enterBy(recipe, c.id) {
		c.tally.violations++
	}
	counts, granted := true, int64(0)
	if c.shared {
		start, counts = p.section.handedOver(c.id)
		granted = now()
	}
	if r.inside != nil {
		r.inside()
	}
	if c.shared {
		p.section.recordRelease(c.id)
	}
	p.section.leaveBy(recipe, c.id)
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

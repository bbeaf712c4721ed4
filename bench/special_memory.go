package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
)

const (
	idleLocks      = 5000
	pendingWaiters = 10_000
	connects       = 7

	// idleAfter is the time after which a lock is idle. It keeps its memory for a moment after a release.
	idleAfter = 3 * time.Second

	// specialLimit is the time limit of a special.
	specialLimit = 50 * time.Second
)

func init() {
	specials["memory"] = measureMemory
	specials["first-use"] = measureFirstUse
}

// measureFirstUse measures the first use of locks, and then the bytes of each, when it is idle.
func measureFirstUse(w *worker, m message) (map[string]float64, error) {
	n, err := m.number("locks")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), specialLimit)
	defer cancel()
	locks, err := actors.Connect(ctx, w.addr, actors.Config{SessionTimeout: sessionTimeout, IdleTimeout: time.Hour})
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	used, begun := memoryInUse(), time.Now()
	if err := useOnce(ctx, locks, m.args["path"], int(n), actorlockModes[w.peer.name]...); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	time.Sleep(idleAfter) // the library uses the machine's clock
	return map[string]float64{"ops_per_sec": float64(n) / took.Seconds(), "bytes_per_lock": (memoryInUse() - used) / float64(n)}, nil
}

// measureMemory measures the bytes of an idle lock and of a waiter, and the time of Connect.
func measureMemory(w *worker, m message) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), specialLimit)
	defer cancel()
	start, err := connectTime(ctx, w.addr)
	if err != nil {
		return nil, err
	}
	mode := actorlockModes[w.peer.name]
	locks, err := actors.Connect(ctx, w.addr, actors.Config{SessionTimeout: sessionTimeout, IdleTimeout: time.Hour})
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	used := memoryInUse()
	if err := useOnce(ctx, locks, m.args["path"]+"/idle", idleLocks, mode...); err != nil {
		return nil, err
	}
	time.Sleep(idleAfter) // the library uses the machine's clock
	idle := (memoryInUse() - used) / idleLocks

	mu := locks.Mutex(m.args["path"]+"/queue", mode...)
	grant, err := mu.Lock(ctx)
	if err != nil {
		return nil, err
	}
	used = memoryInUse()
	waiting := make([]*actors.Future[*actors.Grant], pendingWaiters)
	for i := range waiting {
		waiting[i] = mu.Acquire(ctx)
	}
	if err := awaitContenders(ctx, w.addr, mu.Path(), 1+pendingWaiters); err != nil {
		return nil, err
	}
	waiter := (memoryInUse() - used) / pendingWaiters
	runtime.KeepAlive(waiting)
	return map[string]float64{"bytes_per_idle_lock": idle, "bytes_per_waiter": waiter, "connect_us": start},
		errors.Join(grant.Err(), locks.Close())
}

// connectTime returns the median time of Connect, in microseconds.
func connectTime(ctx context.Context, addr string) (float64, error) {
	var times []float64
	for range connects {
		start := time.Now()
		locks, err := actors.Connect(ctx, addr, actors.Config{SessionTimeout: sessionTimeout})
		if err != nil {
			return 0, err
		}
		times = append(times, micros(time.Since(start)))
		locks.Close()
	}
	return median(times), nil
}

// memoryInUse returns the bytes of heap and stacks without garbage. The first collection may leave objects with cleanups.
func memoryInUse() float64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

// useOnce has 256 clients acquire and release each of n locks once, and returns when the last is granted.
func useOnce(ctx context.Context, locks *actors.Locks, path string, n int, mode ...actors.LockOption) error {
	const clients = 256
	all, ctx := errgroup.WithContext(ctx)
	for client := range clients {
		all.Go(func() error {
			for i := client; i < n; i += clients {
				grant, err := locks.Mutex(fmt.Sprintf("%s/%d", path, i), mode...).Lock(ctx)
				if err != nil {
					return err
				}
				grant.Release()
			}
			return nil
		})
	}
	return all.Wait()
}

// awaitContenders waits until the directory has n nodes. It polls their number, because a watch would fire for each node, and
// need a list of all.
func awaitContenders(ctx context.Context, addr, dir string, n int32) error {
	conn, err := dialZooKeeper(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		exists, stat, err := conn.Exists(dir)
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return err
		case exists && stat.NumChildren >= n:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s has %d nodes instead of %d: %w", dir, stat.NumChildren, n, ctx.Err())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

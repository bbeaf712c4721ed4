package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// The load of the process in scenario beside.
const (
	busyLocks   = 4
	busyReaders = 1000 // per lock
)

func init() { specials["beside"] = measureBeside }

// measureBeside acquires a mutex again and again in a process with busy locks.
func measureBeside(w *worker, m message) (map[string]float64, error) {
	length, err := m.number("nanos")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), specialLimit)
	defer cancel()
	locks, err := actors.Connect(ctx, w.addr, actors.Config{SessionTimeout: sessionTimeout})
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	busyFrom, busy := now(), startReaders(ctx, locks, m.args["path"])
	time.Sleep(warmUp(time.Duration(length)))
	quiet, waits := locks.Mutex(m.args["path"]+"/quiet"), histogram{}
	start := now()
	var worst, elapsed int64
	for elapsed < length && err == nil {
		at := now()
		var grant *actors.Grant
		if grant, err = quiet.Lock(ctx); err == nil {
			end := now()
			waits.add(end - at)
			worst = max(worst, end-at)
			err = grant.Unlock(ctx)
		}
		elapsed = now() - start
	}
	err = cmp.Or(err, busy.stop())
	return map[string]float64{
		"ops_per_sec":      float64(waits.total()) / time.Duration(elapsed).Seconds(),
		"p50_us":           micros(waits.percentile(50)),
		"p99_us":           micros(waits.percentile(99)),
		"worst_us":         micros(time.Duration(worst)),
		"busy_ops_per_sec": float64(busy.done) / time.Duration(now()-busyFrom).Seconds(),
	}, err
}

// readers are goroutines that acquire and release read locks until they are stopped.
type readers struct {
	stopped atomic.Bool
	running sync.WaitGroup

	mu   sync.Mutex
	done int
	err  error
}

func startReaders(ctx context.Context, locks *actors.Locks, path string) *readers {
	r := &readers{}
	for i := range busyLocks {
		lock := locks.RWMutex(fmt.Sprintf("%s/busy-%d", path, i), actors.LocalQueue(actors.LocalQueueConfig{})).Read()
		for range busyReaders {
			r.running.Go(func() {
				n, err := r.read(ctx, lock)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.done += n
				r.err = cmp.Or(r.err, err)
			})
		}
	}
	return r
}

func (r *readers) read(ctx context.Context, lock handle) (n int, err error) {
	for ; !r.stopped.Load(); n++ {
		grant, err := lock.Lock(ctx)
		if err != nil {
			return n, err
		}
		grant.Release()
	}
	return n, nil
}

func (r *readers) stop() error {
	r.stopped.Store(true)
	r.running.Wait()
	return r.err
}

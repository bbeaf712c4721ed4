package costs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const (
	measuredLocks   = 5000
	measuredWaiters = 10_000

	measureLimit = zktest.TimeLimit / 2

	mostPerIdleLock  = 1250 // bytes
	mostPerUsedTwice = 1400 // its directory is watched
	mostPerWaiter    = 1024
	mostPerEndedLock = 192 // room in maps, which never shrink
)

// TestMemory measures the memory of an idle lock, of one that was used twice, of a waiter, and of locks
// whose actors have ended after one use and after two.
// The measured processes have no server.
func TestMemory(t *testing.T) {
	t.Parallel() // a process of its own measures
	s, sampled := zktest.Embedded(t), sample.HabitOneIn(t, 3)
	for what, most := range map[string]float64{"idle": mostPerIdleLock, "twice": mostPerUsedTwice, "waiter": mostPerWaiter, "ended": mostPerEndedLock,
		"ended-twice": mostPerEndedLock} {
		if !sampled() {
			continue
		}
		p := locktest.StartProcess(t, s.Addr(), time.Minute, "")
		p.Send("measure %s %v", what, most)
		var bytes float64
		fmt.Sscan(p.Expect(what), &bytes)
		t.Logf("%s: %.0f bytes", what, bytes)
		if bytes > most {
			t.Errorf("%s: %.0f bytes, want %.0f at most", what, bytes, most)
		}
	}
}

// ---- the program in the process

// measure prints how many bytes one of them takes, as soon as that is at most most.
func measure(p *locktest.Program, rest string) {
	what, most, _ := strings.Cut(rest, " ")
	measures := map[string]func(p *locktest.Program, most float64) (float64, error){"idle": idleBytes(1), "twice": idleBytes(2), "waiter": waiterBytes,
		"ended": endedBytes(1), "ended-twice": endedBytes(2)}
	limit, _ := strconv.ParseFloat(most, 64)
	growRuntime()
	bytes, err := measures[what](p, limit)
	if err != nil {
		p.Print("cannot measure: %v", err)
		return
	}
	p.Print("%s %.0f", what, bytes)
}

// endedBytes uses each lock so many times, in groups. The actors of a group end before the next group
// begins. Otherwise all actors could run at one time on a busy machine, and maps keep the room of all
// their elements.
func endedBytes(uses int) func(p *locktest.Program, most float64) (float64, error) {
	return func(p *locktest.Program, most float64) (bytes float64, err error) {
		locks, err := actors.Connect(context.Background(), p.Addr, actors.Config{SessionTimeout: p.SessionTimeout, IdleTimeout: 10 * time.Millisecond})
		if err != nil {
			return 0, err
		}
		defer locks.Close()
		const groups = 10
		before := heap()
		for group := range groups {
			if err := useEach(locks, fmt.Sprintf("/ended/%d", group), measuredLocks/groups, uses); err != nil {
				return 0, err
			}
			bytes = measureHeap(before, measuredLocks, most)
		}
		return bytes, nil
	}
}

// idleBytes uses many locks, each so many times, and returns the bytes that each takes then.
func idleBytes(uses int) func(p *locktest.Program, most float64) (float64, error) {
	return func(p *locktest.Program, most float64) (float64, error) {
		locks, err := actors.Connect(context.Background(), p.Addr, actors.Config{SessionTimeout: p.SessionTimeout, IdleTimeout: time.Hour})
		if err != nil {
			return 0, err
		}
		defer locks.Close()
		before := heap()
		err = useEach(locks, "/idle", measuredLocks, uses)
		return measureHeap(before, measuredLocks, most), err
	}
}

// useEach acquires and releases each of n locks below path so many times, up to 32 locks at a time.
func useEach(locks *actors.Locks, path string, n, times int) error {
	var all errgroup.Group
	all.SetLimit(32)
	for i := range n {
		all.Go(func() error {
			for range times {
				g, err := locks.Mutex(fmt.Sprintf("%s/%d", path, i)).Lock(context.Background())
				if err != nil {
					return err
				}
				if err := g.Unlock(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// waiterBytes has many requests wait for a lock that is held.
func waiterBytes(p *locktest.Program, most float64) (float64, error) {
	ctx, cancel := context.WithCancel(context.Background()) // as most programs have, and which has a list of its waiters
	defer cancel()
	mu := p.Locks.Mutex("/waiter")
	g, err := mu.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer g.Unlock(ctx)
	before := heap()
	waiting := make([]*actors.Future[*actors.Grant], measuredWaiters)
	for i := range waiting {
		waiting[i] = mu.Acquire(ctx)
	}
	// This request times out only after all of them have their nodes.
	if last, err := mu.Lock(ctx, actors.WithTimeout(time.Second)); !errors.Is(err, actors.ErrTimedOut) {
		return 0, fmt.Errorf("the lock was not held: %v, %w", last, err)
	}
	bytes := measureHeap(before, measuredWaiters, most)
	for _, f := range waiting {
		f.Cancel()
	}
	return bytes, nil
}

// measureHeap returns how much of the heap each of n takes, once that is at most most. It ends
// after a while in any case: an object stays in memory for a moment after its last use, in case it
// is used again.
func measureHeap(before float64, n int, most float64) (each float64) {
	for start := time.Now(); time.Since(start) < measureLimit; <-time.After(100 * time.Millisecond) {
		if each = (heap() - before) / float64(n); each <= most {
			break
		}
	}
	return each
}

// growRuntime runs more goroutines at one time than there are actors: the runtime keeps 480 bytes for
// each that has ever run beside others, and a lost connection wakes all actors at once.
func growRuntime() {
	var all sync.WaitGroup
	end := make(chan struct{})
	for range measuredWaiters {
		all.Go(func() { <-end })
	}
	close(end)
	all.Wait()
}

// heap returns the bytes of the heap and the stacks without garbage. The first collection may leave
// objects with cleanups.
func heap() float64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

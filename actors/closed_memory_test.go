package actors_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// useAll has a process use all that sets timers and waits for contexts, without end.
func useAll(b *locktest.Fixture, ctx context.Context, locks *actors.Locks, path string) {
	g := locktest.Lock(b, locks.Mutex(path), actors.HoldAtMost(time.Hour))
	g.Context(ctx)
	locks.Mutex(path).Acquire(ctx, actors.WithTimeout(time.Hour))
	locktest.Lock(b, locks.Mutex(path+"-l", actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Hour, Time: time.Hour})))
	locktest.Lock(b, locks.Mutex(path+"-d", actors.LockDelay(time.Minute)))
	locks.Mutex(path+"-d", actors.LockDelay(time.Minute)).Acquire(ctx)
	locktest.Lock(b, locks.Semaphore(path+"-s", 2))
	locks.Observe(ctx, path)
	locks.Sessions(ctx)
}

// Nothing keeps closed Locks in memory: no timer, no goroutine, and no context that goes on.
func TestClosedLocksAreCollected(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var all []weak.Pointer[actors.Locks]
		var bridges []weak.Pointer[zkbridge.Bridge] // which keep the session's part
		for i := range 200 {
			locks, err := actors.Connect(locktest.Within(b), b.Addr(), actors.Config{SessionTimeout: locktest.LongSession})
			locktest.Must(b, err)
			useAll(b, ctx, locks, fmt.Sprint(b.LockPath, i)) // the next one waits for the lock-delay
			all, bridges = append(all, weak.Make(locks)), append(bridges, weak.Make(actors.BridgeOf(locks).Bridge))
			locktest.Must(b, locks.Close())
		}
		var counts [2]int
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			runtime.GC()
			counts = [2]int{left(all), left(bridges)}
			return counts == [2]int{}
		}, "closed Locks are collected: left are, and of the bridges, %v", &counts)
	})
}

// left returns how many were not collected.
func left[T any](all []weak.Pointer[T]) (n int) {
	for _, p := range all {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

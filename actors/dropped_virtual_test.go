package actors_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// The garbage collector is outside of a test's bubble, where the clock is another: that it collects
// a lost grant does not end the grant of the next holder.
func TestLostGrantCollectedInVirtualTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.locks().Mutex("/lock")
		func() {
			<-lock(v, mu, actors.HoldAtMost(time.Second)).Done()
		}()
		holder := lock(v, mu, actors.HoldAtMost(time.Hour))
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		<-time.After(5 * time.Second)
		must(v, holder.Err())
		unlock(v, holder)
	})
}

// That it collects a future, of a request that waits or of a grant that no one has taken, does not
// either.
func TestFutureCollectedInVirtualTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks, others := v.locks(), v.locks()
		mu, held := locks.Mutex("/lock"), lock(v, locks.Mutex("/held"))
		first := lock(v, mu)
		func() {
			mu.Acquire(within(v))                            // waits
			<-locks.Mutex("/free").Acquire(within(v)).Done() // holds
		}()
		next := mu.Acquire(within(v))
		v.waitNodes(3)
		<-time.After(5 * time.Second) // a tick arms the leak detection
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		<-time.After(5 * time.Second)
		must(v, held.Err())
		must(v, first.Err())
		unlock(v, lock(v, others.Mutex("/free")))
		unlock(v, first)
		unlock(v, result(v, next))
		unlock(v, held)
	})
}

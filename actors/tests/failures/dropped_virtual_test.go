package failures

import (
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// The garbage collector is outside of a test's bubble, where the clock is another: that it collects
// a lost grant does not end the grant of the next holder.
func TestLostGrantCollectedInVirtualTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		mu := v.Locks().Mutex("/lock")
		func() {
			<-locktest.Lock(v, mu, actors.HoldAtMost(time.Second)).Done()
		}()
		holder := locktest.Lock(v, mu, actors.HoldAtMost(time.Hour))
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		<-time.After(5 * time.Second)
		locktest.Must(v, holder.Err())
		locktest.Unlock(v, holder)
	})
}

// That it collects a future, of a request that waits or of a grant that no one has taken, does not
// either.
func TestFutureCollectedInVirtualTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, others := v.Locks(), v.Locks()
		mu, held := locks.Mutex("/lock"), locktest.Lock(v, locks.Mutex("/held"))
		first := locktest.Lock(v, mu)
		func() {
			mu.Acquire(locktest.Within(v))                            // waits
			<-locks.Mutex("/free").Acquire(locktest.Within(v)).Done() // holds
		}()
		next := mu.Acquire(locktest.Within(v))
		v.WaitNodes(3)
		<-time.After(5 * time.Second) // a tick arms the leak detection
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		<-time.After(5 * time.Second)
		locktest.Must(v, held.Err())
		locktest.Must(v, first.Err())
		locktest.Unlock(v, locktest.Lock(v, others.Mutex("/free")))
		locktest.Unlock(v, first)
		locktest.Unlock(v, locktest.Result(v, next))
		locktest.Unlock(v, held)
	})
}

package recipes

import (
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// One lease of a request that waits for more is deleted. The request waits on, and is granted in
// the end.
func TestSemaphoreLosesPartWhileWaiting(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, other, conn := b.Semaphore(3), b.Semaphore(3), b.Client(b)
		g := locktest.Lock(b, s)
		f := other.Acquire(locktest.Within(b), actors.Permits(3)) // two of which are free
		b.WaitSemaphore(1, 4)
		behind := s.Acquire(locktest.Within(b))
		b.WaitSemaphore(2, 4)
		names := slices.DeleteFunc(b.Leases(), func(name string) bool { return strings.HasSuffix(g.Node(), name) })
		locktest.Must(b, conn.Delete(b.LockPath+"/leases/"+names[0], -1))
		// Both requests are granted, whichever is first.
		h := locktest.Result(b, behind)
		locktest.Pending(b, f)
		locktest.Unlock(b, g)
		locktest.Pending(b, f)
		locktest.Unlock(b, h)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// ---- the tests of kazoo's and Consul's semaphores that are in no other file

func TestSemaphoreNonBlockingRelease(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, two := b.Semaphore(1), b.Semaphore(1)
		g := locktest.Lock(b, one, actors.Try())
		_, err := two.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		b.WaitSemaphore(0, 1)
		locktest.Unlock(b, g)
		g = locktest.Lock(b, two, actors.Try())
		_, err = one.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, g)
	})
}

func TestSemaphoreAcquireAfterCancelled(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, two := b.Semaphore(1), b.Semaphore(1)
		g := locktest.Lock(b, one)
		for range 3 {
			f := two.Acquire(locktest.Within(b))
			b.WaitSemaphore(1, 2)
			f.Cancel()
			locktest.Is(b, locktest.Failure(b, f), actors.ErrCancelled)
			b.WaitSemaphore(0, 1)
		}
		f := two.Acquire(locktest.Within(b))
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
		for range 3 { // and one process acquires again and again
			locktest.Unlock(b, locktest.Lock(b, one))
		}
	})
}

// All requests are granted in order of arrival, for any number of permits.
func TestSemaphoreContend(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		ss := []*actors.Semaphore{b.Semaphore(3), b.Semaphore(3), b.Semaphore(3)}
		g := locktest.Lock(b, ss[0], actors.Permits(3))
		b.WaitSemaphore(0, 3) // its own request has left the queue
		var fs []*actors.Future[*actors.Grant]
		want := []int{1, 3, 2, 1, 3, 3, 1, 1, 1}
		for i, n := range want {
			fs = append(fs, ss[i%3].Acquire(locktest.Within(b), actors.Permits(n)))
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.Queue()) == i+1 }, "the request is in the queue")
		}
		locktest.Unlock(b, g)
		for i := 0; i < len(want); {
			var together []*actors.Grant
			for room := 3; i < len(want) && want[i] <= room; i++ {
				room -= want[i]
				together = append(together, locktest.Result(b, fs[i]))
			}
			locktest.Pending(b, fs[i:]...)
			for _, g := range together {
				locktest.Unlock(b, g)
			}
		}
	})
}

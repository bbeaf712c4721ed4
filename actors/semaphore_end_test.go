package actors_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// One lease of a request that waits for more is deleted. The request waits on, and is granted in
// the end.
func TestSemaphoreLosesPartWhileWaiting(t *testing.T) {
	each(t, func(b *testLock) {
		s, other, conn := b.semaphore(3), b.semaphore(3), b.Client(b)
		g := lock(b, s)
		f := other.Acquire(within(b), actors.Permits(3)) // two of which are free
		b.waitSemaphore(1, 4)
		behind := s.Acquire(within(b))
		b.waitSemaphore(2, 4)
		names := slices.DeleteFunc(b.leases(), func(name string) bool { return strings.HasSuffix(g.Node(), name) })
		must(b, conn.Delete(b.path+"/leases/"+names[0], -1))
		// Both requests are granted, whichever is first.
		h := result(b, behind)
		pending(b, f)
		unlock(b, g)
		pending(b, f)
		unlock(b, h)
		unlock(b, result(b, f))
	})
}

// ---- the tests of kazoo's and Consul's semaphores that are in no other file

func TestSemaphoreNonBlockingRelease(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.semaphore(1), b.semaphore(1)
		g := lock(b, one, actors.Try())
		_, err := two.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		b.waitSemaphore(0, 1)
		unlock(b, g)
		g = lock(b, two, actors.Try())
		_, err = one.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
	})
}

func TestSemaphoreAcquireAfterCancelled(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.semaphore(1), b.semaphore(1)
		g := lock(b, one)
		for range 3 {
			f := two.Acquire(within(b))
			b.waitSemaphore(1, 2)
			f.Cancel()
			is(b, failure(b, f), actors.ErrCancelled)
			b.waitSemaphore(0, 1)
		}
		f := two.Acquire(within(b))
		unlock(b, g)
		unlock(b, result(b, f))
		for range 3 { // and one process acquires again and again
			unlock(b, lock(b, one))
		}
	})
}

// All requests are granted in order of arrival, for any number of permits.
func TestSemaphoreContend(t *testing.T) {
	each(t, func(b *testLock) {
		ss := []*actors.Semaphore{b.semaphore(3), b.semaphore(3), b.semaphore(3)}
		g := lock(b, ss[0], actors.Permits(3))
		b.waitSemaphore(0, 3) // its own request has left the queue
		var fs []*actors.Future[*actors.Grant]
		want := []int{1, 3, 2, 1, 3, 3, 1, 1, 1}
		for i, n := range want {
			fs = append(fs, ss[i%3].Acquire(within(b), actors.Permits(n)))
			zktest.Eventually(b, timeLimit, func() bool { return len(b.queue()) == i+1 }, "the request is in the queue")
		}
		unlock(b, g)
		for i := 0; i < len(want); {
			var together []*actors.Grant
			for room := 3; i < len(want) && want[i] <= room; i++ {
				room -= want[i]
				together = append(together, result(b, fs[i]))
			}
			pending(b, fs[i:]...)
			for _, g := range together {
				unlock(b, g)
			}
		}
	})
}

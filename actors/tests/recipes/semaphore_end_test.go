package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ---- the tests of kazoo's and Consul's semaphores that are in no other file

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

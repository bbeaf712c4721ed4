package actors_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server collects the empty directory while the lock's actor runs. Sequence numbers begin at 0
// in the next directory. The actor must not let a second contender hold because of its knowledge of
// the earlier directory.
func TestDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := lockOn(t, s)
		first, second, client := b.mutex(), b.mutex(), b.Client(b)
		for range 3 {
			unlock(b, lock(b, first))
		}
		zktest.Eventually(b, timeLimit, func() bool {
			exists, _, _ := client.Exists(b.path)
			return !exists
		}, "the empty directory is deleted")

		holder := lock(b, second)
		waiting := first.Acquire(within(b))
		<-time.After(shortWait)
		pending(b, waiting)
		unlock(b, holder)
		g := result(b, waiting)
		expectIncreasing(b, holder.Token(), g.Token())
		unlock(b, g)
	})
}

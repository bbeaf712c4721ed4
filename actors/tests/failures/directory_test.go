package failures

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server collects the empty directory while the lock's actor runs. Sequence numbers begin at 0
// in the next directory. The actor must not let a second contender hold because of its knowledge of
// the earlier directory.
func TestDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := locktest.NewFixture(t, s)
		b.NeedsContainers()
		first, second, client := b.Mutex(), b.Mutex(), b.Client(b)
		for range 3 {
			locktest.Unlock(b, locktest.Lock(b, first))
		}
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			exists, _, _ := client.Exists(b.LockPath)
			return !exists
		}, "the empty directory is deleted")

		holder := locktest.Lock(b, second)
		waiting := first.Acquire(locktest.Within(b))
		<-time.After(locktest.ShortWait)
		locktest.Pending(b, waiting)
		locktest.Unlock(b, holder)
		g := locktest.Result(b, waiting)
		locktest.ExpectIncreasing(b, holder.Token(), g.Token())
		locktest.Unlock(b, g)
	})
}

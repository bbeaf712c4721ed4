package actors_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A grant does not count as dropped during its release, though no reference to it is left.
func TestReleasedIsNotDropped(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config, locktest.IdleTimeout(10*time.Millisecond))
		read := locks.RWMutex(b.LockPath).Read()
		g := locktest.Lock(b, read)
		locktest.Lock(b, read) // which is dropped: leak detection begins
		locktest.CollectUntil(b, func() bool { return len(log.With("dropped without Release")) == 1 }, "the log has the dropped grant")
		unlockAcquisition := sync.OnceFunc(actors.LockAcquisition(g))
		defer unlockAcquisition()
		var freed atomic.Bool
		runtime.AddCleanup(g, func(int) { freed.Store(true) }, 0)
		released := make(chan *actors.Future[struct{}])
		go func(g *actors.Grant) { released <- g.Release() }(g)
		g = nil
		stacks := make([]byte, 1<<20)
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "actors.(*Grant).Release(")
		}, "the release has begun")
		for range 3 {
			var swept atomic.Bool
			runtime.AddCleanup(new([64]byte), func(int) { swept.Store(true) }, 0)
			locktest.CollectUntil(b, swept.Load, "garbage is collected")
		}
		if freed.Load() {
			b.Error("the grant is collected during its release")
		}
		unlockAcquisition()
		locktest.Result(b, <-released)
		locktest.Must(b, locks.Close()) // the lock of the dropped grant goes with the session
		if n := len(log.With("dropped without Release")); n != 1 {
			b.Errorf("%d grants were dropped", n)
		}
	})
}

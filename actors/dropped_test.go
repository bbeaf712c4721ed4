package actors_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A grant does not count as dropped during its release, though no reference to it is left.
func TestReleasedIsNotDropped(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		var log logs
		locks := b.locks(log.config, idle(10*time.Millisecond))
		read := locks.RWMutex(b.path).Read()
		g := lock(b, read)
		lock(b, read) // which is dropped: leak detection begins
		collectUntil(b, func() bool { return len(log.with("dropped without Release")) == 1 }, "the log has the dropped grant")
		unlockAcquisition := sync.OnceFunc(actors.LockAcquisition(g))
		defer unlockAcquisition()
		var freed atomic.Bool
		runtime.AddCleanup(g, func(int) { freed.Store(true) }, 0)
		released := make(chan *actors.Future[struct{}])
		go func(g *actors.Grant) { released <- g.Release() }(g)
		g = nil
		stacks := make([]byte, 1<<20)
		zktest.Eventually(b, timeLimit, func() bool {
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "actors.(*Grant).Release(")
		}, "the release has begun")
		for range 3 {
			var swept atomic.Bool
			runtime.AddCleanup(new([64]byte), func(int) { swept.Store(true) }, 0)
			collectUntil(b, swept.Load, "garbage is collected")
		}
		if freed.Load() {
			b.Error("the grant is collected during its release")
		}
		unlockAcquisition()
		result(b, <-released)
		must(b, locks.Close()) // the lock of the dropped grant goes with the session
		if n := len(log.with("dropped without Release")); n != 1 {
			b.Errorf("%d grants were dropped", n)
		}
	})
}

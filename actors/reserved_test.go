package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
)

// No recipe takes a path where the library keeps its own nodes.
func TestReservedPaths(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		nodes := func() []string { return slices.Sorted(slices.Values(b.Nodes(b, zkbridge.GenerationDirectory))) }
		before := nodes()
		free := locks.Mutex(b.path)
		for _, path := range []string{zkbridge.GenerationDirectory, zkbridge.GenerationPath, zkbridge.GenerationPath + "/a", "/actorlock/a", "/actorlock/a/b"} {
			for name, mu := range map[string]locker{
				"mutex": locks.Mutex(path), "lock-delay": locks.Mutex(path, actors.LockDelay(time.Second)), "local queue": locks.Mutex(path, brief),
				"writer": locks.RWMutex(path).Write(), "semaphore": locks.Semaphore(path, 2), "simple": locks.SimpleMutex(path),
				"simple reader": locks.SimpleRWMutex(path).Read(), "shared": locks.Semaphore(b.path+"-shared", 1, actors.SharedPermits(path)),
				"multi": locks.MultiLock(free, locks.Mutex(path)),
			} {
				_, err := mu.Lock(within(b))
				b.Run(name, func(t *testing.T) { isClear(t, err, path) })
			}
			count := locks.SharedCount(path, 1)
			_, err := count.Get(within(b))
			isClear(b.T, err, path)
			isClear(b.T, count.Set(within(b), 3), path)
			_, err = count.TrySet(within(b), actors.Count{Version: -1}, 3)
			isClear(b.T, err, path)
			_, err = locks.Mutex(path).Participants(within(b))
			isClear(b.T, err, path)
		}
		if after := nodes(); !slices.Equal(before, after) {
			b.Errorf("nodes %v, then %v", before, after)
		}
		// Names that only begin alike are others.
		unlock(b, lock(b, locks.Mutex("/actorlock-orders")))
	})
}

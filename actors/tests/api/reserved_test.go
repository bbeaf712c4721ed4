package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
)

// No recipe takes a path where the library keeps its own nodes.
func TestReservedPaths(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		nodes := func() []string { return slices.Sorted(slices.Values(b.Nodes(b, zkbridge.GenerationDirectory))) }
		before := nodes()
		free := locks.Mutex(b.LockPath)
		for _, path := range []string{zkbridge.GenerationDirectory, zkbridge.GenerationPath, zkbridge.GenerationPath + "/a", "/actorlock/a", "/actorlock/a/b"} {
			handles := map[string]locktest.Handle{
				"shared": locks.Semaphore(b.LockPath+"-shared", 1, actors.SharedPermits(path)), "multi": locks.MultiLock(free, locks.Mutex(path)),
			}
			for _, r := range locktest.Recipes {
				if !strings.HasPrefix(r.Name, "multi") { // whose members are at other paths
					handles[r.Name] = r.At(locks, path)
				}
			}
			for name, mu := range handles {
				_, err := mu.Lock(locktest.Within(b))
				b.Run(name, func(t *testing.T) { locktest.ExpectClear(t, err, path) })
			}
			count := locks.SharedCount(path, 1)
			_, err := count.Get(locktest.Within(b))
			locktest.ExpectClear(b.T, err, path)
			locktest.ExpectClear(b.T, count.Set(locktest.Within(b), 3), path)
			_, err = count.TrySet(locktest.Within(b), actors.Count{Version: -1}, 3)
			locktest.ExpectClear(b.T, err, path)
			_, err = locks.Mutex(path).Participants(locktest.Within(b))
			locktest.ExpectClear(b.T, err, path)
		}
		if after := nodes(); !slices.Equal(before, after) {
			b.Errorf("nodes %v, then %v", before, after)
		}
		// A path that only begins with the same letters is free.
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex("/actorlock-orders")))
	})
}

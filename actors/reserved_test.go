package actors_test

import (
	"slices"
	"strings"
	"testing"

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
			handles := map[string]handle{
				"shared": locks.Semaphore(b.path+"-shared", 1, actors.SharedPermits(path)), "multi": locks.MultiLock(free, locks.Mutex(path)),
			}
			for _, r := range recipes {
				if !strings.HasPrefix(r.name, "multi") { // whose members are at other paths
					handles[r.name] = r.at(locks, path)
				}
			}
			for name, mu := range handles {
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
		// A path that only begins with the same letters is free.
		unlock(b, lock(b, locks.Mutex("/actorlock-orders")))
	})
}

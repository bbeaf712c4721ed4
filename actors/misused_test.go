package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Two recipes of two processes on one path do not exclude each other. The second process logs that once.
func TestTwoRecipesOnOnePath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second string
		reported      bool
	}{
		{"semaphore mutex", "mutex", true},
		{"semaphore", "read", true},
		{"simple mutex", "mutex", true},
		{"simple write", "read", true},
		{"semaphore", "local queue", true},
		{"mutex", "semaphore mutex", true},
		{"read", "semaphore", true},
		{"simple mutex", "semaphore", true},
		{"mutex", "mutex", false},
		{"semaphore", "semaphore", false},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			each(t, func(b *testLock) {
				var log logs
				reports := func() int { return len(log.with("level=ERROR", "two recipes", "path="+b.path)) }
				first := lock(b, named(c.first)[0].at(b.locks(), b.path))
				locks := b.locks(log.config)
				h := named(c.second)[0].at(locks, b.path)
				if c.reported {
					unlock(b, lock(b, h))
					zktest.Eventually(b, timeLimit, func() bool { return reports() == 1 }, "the misuse is reported")
					unlock(b, lock(b, h))
				}
				unlock(b, first)
				unlock(b, lock(b, h))
				if n := reports(); (n == 1) != c.reported || n > 1 {
					b.Errorf("reported %d times", n)
				}
				b.cleanups = append(b.cleanups, func() { // the containers of a semaphore stay for a while
					conn := b.Client(b)
					for _, name := range []string{"/locks", "/leases"} {
						conn.Delete(b.path+name, -1)
					}
				})
			})
		})
	}
}

package actors_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Two recipes of two processes on one path do not exclude each other. The second process logs that
// once.
func TestTwoRecipesOnOnePath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second string
		reported      bool
	}{
		{"semaphore mutex", "mutex", true},
		{"semaphore", "read", true},
		{"semaphore", "local queue", true},
		{"mutex", "semaphore mutex", true},
		{"read", "semaphore", true},
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

// Locks inside a lock's directory, and directories of any name, are no recipe on the lock's path.
func TestNamesAreNoRecipes(t *testing.T) {
	t.Parallel()
	for _, r := range named("mutex", "read", "semaphore") {
		for _, child := range []string{"/locks/orders", "/leases/orders", "/leases/leases/orders", "/lock", "/W/orders", "/R-1/orders", "/a-lock-0000000001/orders"} {
			if r.name != "semaphore" && strings.Contains(child, "-lock-") || r.name == "semaphore" && strings.HasPrefix(child, "/leases") {
				continue // it counts there: see TestPersistentContender, and the line about a permit
			}
			t.Run(r.name+child, func(t *testing.T) {
				bubble(t, func(v *virtual) {
					var log logs
					inside := lock(v, v.locks().Mutex(v.path+child))
					locks := v.locks(log.config)
					unlock(v, lock(v, r.at(locks, v.path)))
					<-time.After(time.Second)
					if lines := log.with("two recipes"); len(lines) > 0 {
						v.Errorf("%s", lines)
					}
					unlock(v, inside)
				})
			})
		}
	}
}

// A persistent node with a contender's name blocks a lock until somebody deletes it. Each process
// that waits for it logs that once, and Inspect shows it.
func TestPersistentContender(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ recipe, end string }{
		{"mutex", "/_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lock-0000000000"},
		{"write", "/0123456789abcdef0123456789abcdef__lock__0000000000"},
		{"local queue", "/x-72057594037927936-0000000000"},
		{"semaphore", "/leases/_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lease-0000000000"},
	} {
		t.Run(c.recipe, func(t *testing.T) {
			each(t, func(b *testLock) {
				var log logs
				conn, locks, r := b.Client(b), b.locks(log.config), named(c.recipe)[0]
				kept := lock(b, locks.Mutex(b.path+c.end+"/inside")) // makes the directories, and keeps them
				f := r.at(locks, b.path).Acquire(within(b))
				node := b.path + c.end
				zktest.Eventually(b, timeLimit, func() bool { return len(log.with("level=WARN", "persistent node", "node="+node)) == 1 }, "it is logged")
				f.Cancel()
				q := inspect(b, locks, b.path)
				if len(q.Participants) == 0 || !q.Participants[0].Persistent || q.Participants[0].Node != node || q.Participants[0].Session != 0 {
					b.Errorf("%+v", q)
				}
				contains(b, q.Participants[0].String(), "session 0x0 (none: the node is persistent)")
				f = r.at(locks, b.path).Acquire(within(b))
				unlock(b, kept)
				zktest.Eventually(b, timeLimit, func() bool {
					err := conn.Delete(node, -1)
					return err == nil || errors.Is(err, zk.ErrNoNode)
				}, "the node is deleted")
				unlock(b, result(b, f))
				if lines := log.with("persistent node"); len(lines) != 1 {
					b.Errorf("%s", lines)
				}
			})
		})
	}
}

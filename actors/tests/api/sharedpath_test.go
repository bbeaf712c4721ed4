package api

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/internal/locktest"
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
			locktest.Each(t, func(b *locktest.Fixture) {
				var log locktest.Log
				reports := func() int { return len(log.With("level=ERROR", "two recipes", "path="+b.LockPath)) }
				first := locktest.Lock(b, locktest.Named(c.first)[0].At(b.Locks(), b.LockPath))
				locks := b.Locks(log.Config)
				h := locktest.Named(c.second)[0].At(locks, b.LockPath)
				if c.reported {
					locktest.Unlock(b, locktest.Lock(b, h))
					zktest.Eventually(b, zktest.TimeLimit, func() bool { return reports() == 1 }, "the misuse is reported")
					locktest.Unlock(b, locktest.Lock(b, h))
				}
				locktest.Unlock(b, first)
				locktest.Unlock(b, locktest.Lock(b, h))
				if n := reports(); (n == 1) != c.reported || n > 1 {
					b.Errorf("reported %d times", n)
				}
				b.Cleanups = append(b.Cleanups, func() { // the containers of a semaphore stay for a while
					conn := b.Client(b)
					for _, name := range []string{"/locks", "/leases"} {
						conn.Delete(b.LockPath+name, -1)
					}
				})
			})
		})
	}
}

// Locks inside a lock's directory, and directories of any name, are no recipe on the lock's path.
func TestNamesAreNoRecipes(t *testing.T) {
	t.Parallel()
	for _, r := range locktest.Named("mutex", "read", "semaphore") {
		for _, child := range []string{"/locks/orders", "/leases/orders", "/leases/leases/orders", "/lock", "/W/orders", "/R-1/orders", "/a-lock-0000000001/orders"} {
			if r.Name != "semaphore" && strings.Contains(child, "-lock-") || r.Name == "semaphore" && strings.HasPrefix(child, "/leases") {
				continue // it counts there: see TestPersistentContender, and the line about a permit
			}
			t.Run(r.Name+child, func(t *testing.T) {
				locktest.Bubble(t, func(v *locktest.Virtual) {
					var log locktest.Log
					inside := locktest.Lock(v, v.Locks().Mutex(v.LockPath+child))
					locks := v.Locks(log.Config)
					locktest.Unlock(v, locktest.Lock(v, r.At(locks, v.LockPath)))
					<-time.After(time.Second)
					if lines := log.With("two recipes"); len(lines) > 0 {
						v.Errorf("%s", lines)
					}
					locktest.Unlock(v, inside)
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
			locktest.Each(t, func(b *locktest.Fixture) {
				b.NeedsContainers() // what is below the node goes with its lock, so that it can be deleted
				var log locktest.Log
				conn, locks, r := b.Client(b), b.Locks(log.Config), locktest.Named(c.recipe)[0]
				kept := locktest.Lock(b, locks.Mutex(b.LockPath+c.end+"/inside")) // makes the directories, and keeps them
				f := r.At(locks, b.LockPath).Acquire(locktest.Within(b))
				node := b.LockPath + c.end
				zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(log.With("level=WARN", "persistent node", "node="+node)) == 1 }, "it is logged")
				f.Cancel()
				q := locktest.Inspect(b, locks, b.LockPath)
				if len(q.Participants) == 0 || !q.Participants[0].Persistent || q.Participants[0].Node != node || q.Participants[0].Session != 0 {
					b.Errorf("%+v", q)
				}
				locktest.ExpectParts(b, q.Participants[0].String(), "session 0x0 (none: the node is persistent)")
				f = r.At(locks, b.LockPath).Acquire(locktest.Within(b))
				locktest.Unlock(b, kept)
				zktest.Eventually(b, zktest.TimeLimit, func() bool {
					err := conn.Delete(node, -1)
					return err == nil || errors.Is(err, zk.ErrNoNode)
				}, "the node is deleted")
				locktest.Unlock(b, locktest.Result(b, f))
				if lines := log.With("persistent node"); len(lines) != 1 {
					b.Errorf("%s", lines)
				}
			})
		})
	}
}

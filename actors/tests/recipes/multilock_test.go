package recipes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMultiLock(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		multi := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...)
		conn := b.Client(b)
		for range 2 {
			g := locktest.Lock(b, multi)
			nodes := g.Nodes()
			if len(nodes) != 3 {
				b.Fatalf("nodes %v", nodes)
			}
			for _, node := range nodes {
				exists, stat, err := conn.Exists(node)
				if err != nil || !exists || stat.Czxid != g.Token().Czxid {
					b.Errorf("%s: %v, made by %#x, the token is %v", node, err, stat.Czxid, g.Token())
				}
			}
			locktest.Must(b, g.Verify(locktest.Within(b)))
			for _, m := range locktest.ThreeMembers(others, b.LockPath)[:2] {
				_, err := m.(locktest.Handle).Lock(locktest.Within(b), actors.Try())
				locktest.Is(b, err, actors.ErrNotAcquired)
			}
			locktest.Unlock(b, locktest.Lock(b, others.RWMutex(b.LockPath+"-c").Read(), actors.Try())) // read by several
			locktest.Unlock(b, g)
			locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNotHeld)
		}
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// Another owner holds one member. The multi-lock's nodes in the other members wait, too, and are
// deleted when the request ends.
func TestMultiLockWaits(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		multi := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...)
		held := locktest.Lock(b, others.RWMutex(b.LockPath+"-b").Read())
		_, err := multi.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		_, err = multi.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
		locktest.Is(b, err, actors.ErrTimedOut)
		b.WaitNodes(0, "-a", "-c")
		b.WaitNodes(1, "-b")
		f := multi.Acquire(locktest.Within(b))
		f.Cancel()
		locktest.Is(b, locktest.Failure(b, f), actors.ErrCancelled)
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath+"-a"))) // so that the create of f's nodes is answered
		b.WaitNodes(0, "-a", "-c")
		b.WaitNodes(1, "-b")
		f = multi.Acquire(locktest.Within(b))
		b.WaitNodes(1, "-a")
		behind := others.Mutex(b.LockPath + "-a").Acquire(locktest.Within(b))
		locktest.Pending(b, f, behind)
		locktest.Unlock(b, held)
		locktest.Unlock(b, locktest.Result(b, f))
		locktest.Unlock(b, locktest.Result(b, behind))
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// Two multi-locks of the same members in opposite orders, of one process and of several,
// never wait for each other.
func TestMultiLocksDoNotDeadlock(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		inside := map[string]*int{"-a": new(int), "-b": new(int)}
		one, two := b.Locks(), b.Locks()
		b.Turns(4, 30, func(i int) locktest.Turn {
			locks, ends := []*actors.Locks{one, two}[i/2], []string{"-a", "-b"}
			if i%2 == 1 {
				ends = []string{"-b", "-a"}
			}
			multi := locks.MultiLock(locks.Mutex(b.LockPath+ends[0]), locks.Mutex(b.LockPath+ends[1]))
			return locktest.Turn{Lock: multi, Inside: func(*actors.Grant) {
				for _, n := range inside { // the race detector checks this
					if *n++; *n != 1 {
						b.Errorf("%d inside", *n)
					}
				}
				for _, n := range inside {
					*n--
				}
			}}
		})
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// A request that waits at the loss of the session queues again, in all members by one transaction.
func TestMultiLockOutlivesSessions(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		multi := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...)
		held := locktest.Lock(b, others.Mutex(b.LockPath+"-a"))
		f := multi.Acquire(locktest.Within(b))
		b.WaitNodes(1, "-c")
		b.ExpireSession(locks)
		locktest.Pending(b, f)
		locktest.Unlock(b, held)
		g := locktest.Result(b, f)
		if g.Session() != locks.Session().ID {
			b.Error("the grant is of another session")
		}
		// One of its nodes is deleted while it waits: the others are deleted, too, and it queues
		// again.
		w := others.Mutex(b.LockPath + "-a").Acquire(locktest.Within(b))
		b.WaitNodes(2, "-a")
		next := multi.Acquire(locktest.Within(b))
		b.WaitNodes(2, "-b")
		var waiting string
		for _, name := range b.Nodes(b, b.LockPath+"-b") {
			if b.LockPath+"-b/"+name != g.Nodes()[1] {
				waiting = name
			}
		}
		locktest.Must(b, b.Client(b).Delete(b.LockPath+"-b/"+waiting, -1))
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			names := b.Nodes(b, b.LockPath+"-b")
			return len(names) == 2 && !slices.Contains(names, waiting)
		}, "the next queues again")
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, w))
		locktest.Unlock(b, locktest.Result(b, next))
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// The bridge refuses a part of the request, which fails and is not repeated.
func TestMultiLockOverALimit(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxOutstanding = 2 })
		_, err := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...).Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrLimit)
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath+"-a")))
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// A semaphore is a member: its node in the request queue is created with the other nodes, and its
// lease later.
func TestMultiLockWithASemaphore(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, two := b.Locks(), b.Locks()
		var g errgroup.Group
		inside := 0
		for i, locks := range []*actors.Locks{one, one, two, two} {
			members := []actors.Member{locks.Mutex(b.LockPath + "-a"), locks.Semaphore(b.LockPath+"-b", 1)}
			if i%2 == 1 {
				members[0], members[1] = members[1], members[0]
			}
			multi := locks.MultiLock(members...)
			g.Go(func() error {
				for range 15 {
					grant, err := multi.Lock(locktest.Within(b))
					if err != nil {
						return err
					}
					if inside++; inside != 1 || len(grant.Nodes()) != 2 { // the race detector checks this
						return fmt.Errorf("%d inside, nodes %v", inside, grant.Nodes())
					}
					inside--
					if err := grant.Unlock(locktest.Within(b)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		locktest.Must(b, g.Wait())
		held := locktest.Lock(b, two.Semaphore(b.LockPath+"-b", 1))
		_, err := one.MultiLock(one.Mutex(b.LockPath+"-a"), one.Semaphore(b.LockPath+"-b", 1)).Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
		locktest.Is(b, err, actors.ErrTimedOut)
		locktest.Unlock(b, locktest.Lock(b, two.Mutex(b.LockPath+"-a")))
		locktest.Unlock(b, held)
		b.WaitNodes(0, "-a", "-b/locks", "-b/leases")
	})
}

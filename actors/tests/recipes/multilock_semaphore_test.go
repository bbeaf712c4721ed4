package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A contender for another member comes while a multi-lock waits in the request queue of its
// semaphore. Tokens increase from the grant of one to that of the other.
func TestMultiLockTokensWithASemaphore(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		permit := others.Semaphore(b.LockPath+"-s", 1)
		first := locktest.Lock(b, permit)
		second := permit.Acquire(locktest.Within(b)) // which waits for a lease
		b.WaitNodes(2, "-s/leases")
		f := locks.MultiLock(locks.Mutex(b.LockPath+"-a"), locks.Semaphore(b.LockPath+"-s", 1)).Acquire(locktest.Within(b))
		b.WaitNodes(2, "-s/locks") // the multi-lock is in the request queue
		between := others.Mutex(b.LockPath + "-a").Acquire(locktest.Within(b))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return locktest.IsClosed(between.Done()) || len(b.Nodes(b, b.LockPath+"-a")) == 2 }, "the node of the other contender")
		locktest.Unlock(b, first)
		g := locktest.Result(b, second)
		locktest.Unlock(b, g)
		tokens := []actors.Token{g.Token()}
		b.InTurn(func(g *actors.Grant) {
			tokens = append(tokens, g.Token())
			for _, node := range g.Nodes() {
				locktest.Must(b, locks.VerifyToken(locktest.Within(b), node, g.Token()))
			}
			locktest.Must(b, g.Verify(locktest.Within(b)))
		}, f, between)
		locktest.ExpectIncreasing(b, tokens...)
		b.WaitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

// A multi-lock loses a node of its semaphore while it waits, and all its members queue again. If
// only the semaphore did, the request would be behind another multi-lock there and ahead of it in
// the other member.
func TestMultiLocksDoNotDeadlockAfterALoss(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		of := func(l *actors.Locks) *actors.MultiLock {
			return l.MultiLock(l.Mutex(b.LockPath+"-a"), l.Semaphore(b.LockPath+"-s", 1))
		}
		for _, below := range []string{"/locks", "/leases"} {
			held := locktest.Lock(b, others.Semaphore(b.LockPath+"-s", 1))
			one := of(locks).Acquire(locktest.Within(b))
			b.WaitNodes(2, "-s/leases") // the first waits for a lease
			two := of(others).Acquire(locktest.Within(b))
			b.WaitNodes(2, "-s/locks") // the second is in the request queue
			waiting := ""
			for _, name := range b.Nodes(b, b.LockPath+"-s"+below) {
				node := b.LockPath + "-s" + below + "/" + name
				_, stat, err := b.Client(b).Exists(node)
				locktest.Must(b, err)
				if stat.EphemeralOwner == locks.Session().ID {
					waiting = node
				}
			}
			locktest.Must(b, b.Client(b).Delete(waiting, -1))
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				return len(b.Nodes(b, b.LockPath+"-s/locks")) == 2 && len(b.Nodes(b, b.LockPath+"-s/leases")) == 2
			}, "the first queues again")
			locktest.Unlock(b, held)
			b.InTurn(func(*actors.Grant) {}, one, two)
		}
		b.WaitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

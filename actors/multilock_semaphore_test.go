package actors_test

import (
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A contender for another member comes while a multi-lock waits in the request queue of its
// semaphore. Tokens increase from the grant of one to that of the other.
func TestMultiLockTokensWithASemaphore(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		permit := others.Semaphore(b.path+"-s", 1)
		first := lock(b, permit)
		second := permit.Acquire(within(b)) // which waits for a lease
		b.waitNodes(2, "-s/leases")
		f := locks.MultiLock(locks.Mutex(b.path+"-a"), locks.Semaphore(b.path+"-s", 1)).Acquire(within(b))
		b.waitNodes(2, "-s/locks") // the multi-lock is in the request queue
		between := others.Mutex(b.path + "-a").Acquire(within(b))
		zktest.Eventually(b, timeLimit, func() bool { return isClosed(between.Done()) || len(b.Nodes(b, b.path+"-a")) == 2 }, "the node of the other contender")
		unlock(b, first)
		g := result(b, second)
		unlock(b, g)
		tokens := []actors.Token{g.Token()}
		b.inTurn(func(g *actors.Grant) {
			tokens = append(tokens, g.Token())
			for _, node := range g.Nodes() {
				must(b, locks.VerifyToken(within(b), node, g.Token()))
			}
			must(b, g.Verify(within(b)))
		}, f, between)
		expectIncreasing(b, tokens...)
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

// A multi-lock loses a node of its semaphore while it waits, and all its members queue again. If
// only the semaphore did, the request would be behind another multi-lock there and ahead of it in
// the other member.
func TestMultiLocksDoNotDeadlockAfterALoss(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		of := func(l *actors.Locks) *actors.MultiLock {
			return l.MultiLock(l.Mutex(b.path+"-a"), l.Semaphore(b.path+"-s", 1))
		}
		for _, below := range []string{"/locks", "/leases"} {
			held := lock(b, others.Semaphore(b.path+"-s", 1))
			one := of(locks).Acquire(within(b))
			b.waitNodes(2, "-s/leases") // the first waits for a lease
			two := of(others).Acquire(within(b))
			b.waitNodes(2, "-s/locks") // the second is in the request queue
			waiting := ""
			for _, name := range b.Nodes(b, b.path+"-s"+below) {
				node := b.path + "-s" + below + "/" + name
				_, stat, err := b.Client(b).Exists(node)
				must(b, err)
				if stat.EphemeralOwner == locks.Session().ID {
					waiting = node
				}
			}
			must(b, b.Client(b).Delete(waiting, -1))
			zktest.Eventually(b, timeLimit, func() bool {
				return len(b.Nodes(b, b.path+"-s/locks")) == 2 && len(b.Nodes(b, b.path+"-s/leases")) == 2
			}, "the first queues again")
			unlock(b, held)
			b.inTurn(func(*actors.Grant) {}, one, two)
		}
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

// A lease is deleted while its request waits, which then makes another lease. The grant has the
// token of the new lease.
func TestSemaphoreTokenOfANewLease(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		held := lock(b, others.Semaphore(b.path, 2), actors.Permits(2))
		f := locks.Semaphore(b.path, 2).Acquire(within(b), actors.Permits(2))
		b.waitSemaphore(1, 4)
		conn := b.Client(b)
		last := ""
		for _, name := range b.leases() {
			if !slices.Contains(held.Nodes(), b.path+"/leases/"+name) && (last == "" || name[len(name)-10:] > last[len(last)-10:]) {
				last = name
			}
		}
		must(b, conn.Delete(b.path+"/leases/"+last, -1))
		unlock(b, held)
		g := result(b, f)
		must(b, locks.VerifyToken(within(b), g.Node(), g.Token()))
		must(b, g.Verify(within(b)))
		for _, node := range g.Nodes() {
			if _, stat, err := conn.Exists(node); err != nil || stat.Czxid > g.Token().Czxid {
				b.Errorf("%s was made by %#x, the token is %v; %v", node, stat.Czxid, g.Token(), err)
			}
		}
		unlock(b, g)
	})
}

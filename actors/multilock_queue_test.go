package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// A multi-lock that waits in the request queue of a semaphore is refused as soon as its owner requests one of
// the other members.
func TestMultiLockInARequestQueue(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"), locks.Semaphore(b.path+"-s", 1)
		waitQueued := func(n int) {
			b.Helper()
			b.waitNodes(n, "-s/locks")
		}
		held := lock(b, others.Semaphore(b.path+"-s", 1))
		waitQueued(0)                                               // so that held's request node is not taken for that of next
		next := others.Semaphore(b.path+"-s", 1).Acquire(within(b)) // which waits for a lease
		waitQueued(1)
		for _, acquire := range []func() *actors.Grant{
			func() *actors.Grant { return lock(b, x, me) },
			func() *actors.Grant { return lock(b, x, me, actors.Try()) },
			func() *actors.Grant { return lock(b, locks.MultiLock(y, x), me) },
		} {
			f, stays := locks.MultiLock(x, s).Acquire(within(b), me), locks.MultiLock(x, s).Acquire(within(b), actors.WithOwner("you"))
			waitQueued(3)
			unlock(b, lock(b, y, me))
			unlock(b, lock(b, x))
			pending(b, f, stays)
			g := acquire()
			is(b, failure(b, f), actors.ErrDeadlock)
			pending(b, stays)
			stays.Cancel()
			unlock(b, g)
			waitQueued(1)
		}
		elsewhere := lock(b, others.Mutex(b.path+"-a"))
		f := locks.MultiLock(x, s).Acquire(within(b), me)
		waitQueued(2)
		wait := x.Acquire(within(b), me)
		is(b, failure(b, f), actors.ErrDeadlock)
		unlock(b, elsewhere)
		unlock(b, result(b, wait))

		f = locks.MultiLock(x, s).Acquire(within(b), me)
		waitQueued(2)
		unlock(b, held)
		unlock(b, result(b, next))
		g := result(b, f)
		again := lock(b, x, me) // by the node of the multi-lock
		unlock(b, g)
		unlock(b, again)
		unlock(b, lock(b, x, me))
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

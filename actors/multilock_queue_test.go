package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// While a multi-lock waits in the request queue of a semaphore, its owner gets one of the other
// members alone. Once the multi-lock has passed the queue, it is refused, and keeps no other
// request from what it would have got.
func TestMultiLockInARequestQueue(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"), locks.Semaphore(b.path+"-s", 1)
		for _, acquire := range []func() *actors.Grant{
			func() *actors.Grant { return lock(b, x, me) },
			func() *actors.Grant { return lock(b, x, me, actors.Try()) },
			func() *actors.Grant { return lock(b, locks.MultiLock(y, x), me) },
		} {
			held := lock(b, others.Semaphore(b.path+"-s", 1))
			b.waitNodes(0, "-s/locks")                                  // so that held's request node is not taken for that of next
			next := others.Semaphore(b.path+"-s", 1).Acquire(within(b)) // which waits for a lease at the head of the queue
			b.waitNodes(1, "-s/locks")
			f := locks.MultiLock(x, s).Acquire(within(b), me)
			b.waitNodes(2, "-s/locks")
			stays := locks.MultiLock(x, s).Acquire(within(b), actors.WithOwner("you"))
			b.waitNodes(3, "-s/locks")
			g := acquire()
			pending(b, f, stays)
			unlock(b, held)
			unlock(b, result(b, next))
			is(b, failure(b, f), actors.ErrDeadlock)
			pending(b, stays)
			unlock(b, g)
			unlock(b, result(b, stays))
		}
		g := lock(b, locks.MultiLock(x, s), me)
		_, err := x.Lock(within(b), me)
		is(b, err, actors.ErrDeadlock)
		unlock(b, g)
		unlock(b, lock(b, x, me))
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// While a multi-lock waits in the request queue of a semaphore, its owner gets one of the other
// members alone. Once the multi-lock has passed the queue, it is refused, and keeps no other
// request from what it would have got.
func TestMultiLockInARequestQueue(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.LockPath+"-a"), locks.Mutex(b.LockPath+"-b"), locks.Semaphore(b.LockPath+"-s", 1)
		for _, acquire := range []func() *actors.Grant{
			func() *actors.Grant { return locktest.Lock(b, x, me) },
			func() *actors.Grant { return locktest.Lock(b, x, me, actors.Try()) },
			func() *actors.Grant { return locktest.Lock(b, locks.MultiLock(y, x), me) },
		} {
			held := locktest.Lock(b, others.Semaphore(b.LockPath+"-s", 1))
			b.WaitNodes(0, "-s/locks")                                               // so that held's request node is not taken for that of next
			next := others.Semaphore(b.LockPath+"-s", 1).Acquire(locktest.Within(b)) // which waits for a lease at the head of the queue
			b.WaitNodes(1, "-s/locks")
			f := locks.MultiLock(x, s).Acquire(locktest.Within(b), me)
			b.WaitNodes(2, "-s/locks")
			stays := locks.MultiLock(x, s).Acquire(locktest.Within(b), actors.WithOwner("you"))
			b.WaitNodes(3, "-s/locks")
			g := acquire()
			locktest.Pending(b, f, stays)
			locktest.Unlock(b, held)
			locktest.Unlock(b, locktest.Result(b, next))
			locktest.Is(b, locktest.Failure(b, f), actors.ErrDeadlock)
			locktest.Pending(b, stays)
			locktest.Unlock(b, g)
			locktest.Unlock(b, locktest.Result(b, stays))
		}
		g := locktest.Lock(b, locks.MultiLock(x, s), me)
		_, err := x.Lock(locktest.Within(b), me)
		locktest.Is(b, err, actors.ErrDeadlock)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Lock(b, x, me))
		b.WaitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

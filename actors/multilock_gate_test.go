package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// A multi-lock that waits in the request queue of a semaphore is refused at once if its owner asks for
// one of the other members: it would be refused in the end, whenever that is.
func TestMultiLockAtAGate(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"), locks.Semaphore(b.path+"-s", 1)
		atGate := func(n int) {
			b.Helper()
			b.waitNodes(n, "-s/locks")
		}
		held := lock(b, others.Semaphore(b.path+"-s", 1))
		atGate(0)                                                   // otherwise the node that held's request leaves behind could be taken for that of next
		next := others.Semaphore(b.path+"-s", 1).Acquire(within(b)) // past the request queue
		atGate(1)
		for _, ask := range []func() *actors.Grant{
			func() *actors.Grant { return lock(b, x, me) },
			func() *actors.Grant { return lock(b, x, me, actors.Try()) },
			func() *actors.Grant { return lock(b, locks.MultiLock(y, x), me) },
		} {
			f, stays := locks.MultiLock(x, s).Acquire(within(b), me), locks.MultiLock(x, s).Acquire(within(b), actors.WithOwner("you"))
			atGate(3)
			unlock(b, lock(b, y, me))
			unlock(b, lock(b, x))
			pending(b, f, stays)
			g := ask()
			is(b, failure(b, f), actors.ErrDeadlock)
			pending(b, stays)
			stays.Cancel()
			unlock(b, g)
			atGate(1)
		}
		taken := lock(b, others.Mutex(b.path+"-a"))
		f := locks.MultiLock(x, s).Acquire(within(b), me)
		atGate(2)
		wait := x.Acquire(within(b), me)
		is(b, failure(b, f), actors.ErrDeadlock)
		unlock(b, taken)
		unlock(b, result(b, wait))

		f = locks.MultiLock(x, s).Acquire(within(b), me)
		atGate(2)
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

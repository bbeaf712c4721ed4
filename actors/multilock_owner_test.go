package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An owner enters a multi-lock again. All its grants have one token, and the members stay held
// until the last is released.
func TestMultiLockReentrant(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		me := actors.WithOwner("me")
		multi := locks.MultiLock(b.threeMembers(locks)...)
		all := []*actors.Grant{lock(b, multi, me), lock(b, multi, me, actors.Try()), lock(b, locks.MultiLock(b.threeMembers(locks)...), me)}
		b.waitNodes(1, "-a", "-b", "-c")
		for _, g := range all {
			must(b, g.Verify(within(b)))
			if g.Token() != all[0].Token() {
				b.Errorf("token %v of %s, the first has %v", g.Token(), g.Path(), all[0].Token())
			}
		}
		for _, g := range all {
			_, err := b.locks().RWMutex(b.path+"-b").Write().Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
			unlock(b, g)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Requests of one owner share what they wait for: one that is cancelled leaves it to the others,
// and a try does not wait.
func TestMultiLockSharedWait(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		me := actors.WithOwner("me")
		multi := locks.MultiLock(b.threeMembers(locks)...)
		held := lock(b, b.locks().Mutex(b.path+"-a"))
		first, second, third := multi.Acquire(within(b), me), multi.Acquire(within(b), me), multi.Acquire(within(b), me)
		b.waitNodes(2, "-a")
		_, err := multi.Lock(within(b), me, actors.Try())
		is(b, err, actors.ErrNotAcquired)
		for _, f := range []*actors.Future[*actors.Grant]{first, third} {
			f.Cancel()
			_, err := f.Result()
			is(b, err, actors.ErrCancelled)
		}
		pending(b, second)
		unlock(b, held)
		g, again := result(b, second), lock(b, multi, me)
		must(b, b.Client(b).Delete(g.Node(), -1))
		for _, g := range []*actors.Grant{g, again} {
			closes(b, g.Done(), "a member is deleted")
			is(b, g.Unlock(within(b)), actors.ErrNodeDeleted)
		}
		unlock(b, lock(b, multi, me))
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Two waiting requests of one owner share their nodes, and share the new nodes after a loss.
func TestMultiLockWaitsTwiceForOneOwner(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		me := actors.WithOwner("me")
		multi := locks.MultiLock(locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"))
		held := lock(b, others.Mutex(b.path+"-b"))
		one, two := multi.Acquire(within(b), me, actors.Revocable()), multi.Acquire(within(b), me)
		b.waitNodes(2, "-b")
		first := b.Nodes(b, b.path+"-a")[0] // by which they hold that member
		must(b, b.Client(b).Delete(b.path+"-a/"+first, -1))
		b.expire(locks)
		zktest.Eventually(b, timeLimit, func() bool {
			nodes := b.Nodes(b, b.path+"-a")
			return len(nodes) == 1 && nodes[0] != first && len(b.Nodes(b, b.path+"-b")) == 2
		}, "they queue again")
		pending(b, one, two)
		unlock(b, held)
		g, again := result(b, one), result(b, two)
		if g.Token() != again.Token() {
			b.Errorf("tokens %v and %v", g.Token(), again.Token())
		}
		unlock(b, g)
		unlock(b, again)
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// An owner that holds some of the members, or all by several requests, is refused at once: it would
// wait while it holds, and no token would be right for all members.
func TestMultiLockOfHeldMembers(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		me := actors.WithOwner("me")
		x, y, z := locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"), locks.Mutex(b.path+"-c")
		s, r := locks.Semaphore(b.path+"-s", 3), locks.Semaphore(b.path+"-r", 3)
		refused := func(why string, members ...actors.Member) {
			b.Helper()
			for _, options := range [][]actors.Option{{me}, {me, actors.Try()}} {
				if _, err := locks.MultiLock(members...).Lock(within(b), options...); err == nil {
					b.Errorf("%s: granted", why)
				} else {
					is(b, err, actors.ErrDeadlock)
				}
			}
		}

		g := lock(b, x, me)
		refused("one is held", x, y)
		refused("one is held", y, x)
		refused("one is held", x, s)
		refused("one is held", s, x, y)
		h := lock(b, y, me)
		refused("both are held, each by its own node", x, y)
		unlock(b, g)
		unlock(b, h)

		held := lock(b, others.Mutex(b.path+"-a"))
		f := x.Acquire(within(b), me)
		b.waitNodes(2, "-a")
		refused("the owner waits for one", x, y)
		refused("the owner waits for one", x, s)
		unlock(b, held)
		unlock(b, result(b, f))

		g = lock(b, locks.MultiLock(x, y), me)
		refused("fewer members than it holds", x)
		refused("the members in another order", y, x)
		for _, member := range []*actors.Mutex{x, y} {
			_, err := member.Lock(within(b), me)
			is(b, err, actors.ErrDeadlock)
		}
		refused("more members than it holds", x, y, z)
		refused("more members than it holds", x, y, s)
		h = lock(b, locks.MultiLock(z), me)
		refused("of two multi-locks", x, z)
		unlock(b, g)
		unlock(b, h)

		g = lock(b, s, me)
		refused("a permit of a semaphore", s, x)
		refused("a permit of one semaphore", s, r)
		unlock(b, g)
		g = lock(b, locks.MultiLock(x, s), me)
		refused("there is no re-entry into a semaphore", x, s)
		unlock(b, g)

		g = lock(b, locks.MultiLock(s, r), me)
		refused("there is no re-entry into semaphores", s, r)
		unlock(b, g)
		unlock(b, lock(b, locks.MultiLock(x, y, z, s), actors.WithOwner("you")))
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases", "-r/locks", "-r/leases")
	})
}

// An owner that has lost a member and not released it is refused with the reason of the loss, as
// the member alone refuses it.
func TestMultiLockOfALostMember(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"), locks.Semaphore(b.path+"-s", 2)
		conn := b.Client(b)
		g := lock(b, x, me, actors.Revocable())
		must(b, conn.Delete(g.Node(), -1))
		closes(b, g.Done(), "the grant")
		for _, members := range [][]actors.Member{{x, y}, {y, x}, {x, s}, {s, y, x}} {
			for _, options := range [][]actors.Option{{me}, {me, actors.Try()}} {
				_, err := locks.MultiLock(members...).Lock(within(b), options...)
				is(b, err, actors.ErrNodeDeleted)
			}
		}
		is(b, g.Unlock(within(b)), actors.ErrNodeDeleted)
		unlock(b, lock(b, locks.MultiLock(x, y), me))
		unlock(b, lock(b, locks.MultiLock(x, s), me))

		// The session is lost.
		g = lock(b, x, me)
		b.expire(locks)
		for _, members := range [][]actors.Member{{x, y}, {x, s}} {
			_, err := locks.MultiLock(members...).Lock(within(b), me)
			is(b, err, actors.ErrSessionLost)
		}
		is(b, g.Unlock(within(b)), actors.ErrSessionLost)

		// A semaphore does not refuse an owner with a lost permit, as there is no re-entry.
		g = lock(b, s, me, actors.Revocable())
		must(b, conn.Delete(g.Node(), -1))
		closes(b, g.Done(), "the grant of a permit")
		unlock(b, lock(b, locks.MultiLock(x, s), me))
		is(b, g.Unlock(within(b)), actors.ErrNodeDeleted)
		b.waitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

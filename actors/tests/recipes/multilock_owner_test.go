package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// An owner enters a multi-lock again. All its grants have one token, and the members stay held
// until the last is released.
func TestMultiLockReentrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		me := actors.WithOwner("me")
		multi := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...)
		all := []*actors.Grant{locktest.Lock(b, multi, me), locktest.Lock(b, multi, me, actors.Try()), locktest.Lock(b, locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...), me)}
		b.WaitNodes(1, "-a", "-b", "-c")
		for _, g := range all {
			locktest.Must(b, g.Verify(locktest.Within(b)))
			if g.Token() != all[0].Token() {
				b.Errorf("token %v of %s, the first has %v", g.Token(), g.Path(), all[0].Token())
			}
		}
		for _, g := range all {
			_, err := b.Locks().RWMutex(b.LockPath+"-b").Write().Lock(locktest.Within(b), actors.Try())
			locktest.Is(b, err, actors.ErrNotAcquired)
			locktest.Unlock(b, g)
		}
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// Requests of one owner share what they wait for: one that is cancelled leaves it to the others,
// and a try does not wait.
func TestMultiLockSharedWait(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		me := actors.WithOwner("me")
		multi := locks.MultiLock(locktest.ThreeMembers(locks, b.LockPath)...)
		held := locktest.Lock(b, b.Locks().Mutex(b.LockPath+"-a"))
		first, second, third := multi.Acquire(locktest.Within(b), me), multi.Acquire(locktest.Within(b), me), multi.Acquire(locktest.Within(b), me)
		b.WaitNodes(2, "-a")
		_, err := multi.Lock(locktest.Within(b), me, actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		for _, f := range []*actors.Future[*actors.Grant]{first, third} {
			f.Cancel()
			_, err := f.Result()
			locktest.Is(b, err, actors.ErrCancelled)
		}
		locktest.Pending(b, second)
		locktest.Unlock(b, held)
		g, again := locktest.Result(b, second), locktest.Lock(b, multi, me)
		locktest.Must(b, b.Client(b).Delete(g.Node(), -1))
		for _, g := range []*actors.Grant{g, again} {
			locktest.Closes(b, g.Done(), "a member is deleted")
			locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNodeDeleted)
		}
		locktest.Unlock(b, locktest.Lock(b, multi, me))
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// An owner that holds some of the members, or all by several requests, is refused at once: it would
// wait while it holds, and no token would be right for all members.
func TestMultiLockOfHeldMembers(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		me := actors.WithOwner("me")
		x, y, z := locks.Mutex(b.LockPath+"-a"), locks.Mutex(b.LockPath+"-b"), locks.Mutex(b.LockPath+"-c")
		s, r := locks.Semaphore(b.LockPath+"-s", 3), locks.Semaphore(b.LockPath+"-r", 3)
		refused := func(why string, members ...actors.Member) {
			b.Helper()
			for _, options := range [][]actors.Option{{me}, {me, actors.Try()}} {
				if _, err := locks.MultiLock(members...).Lock(locktest.Within(b), options...); err == nil {
					b.Errorf("%s: granted", why)
				} else {
					locktest.Is(b, err, actors.ErrDeadlock)
				}
			}
		}

		g := locktest.Lock(b, x, me)
		refused("one is held", x, y)
		refused("one is held", y, x)
		refused("one is held", x, s)
		refused("one is held", s, x, y)
		h := locktest.Lock(b, y, me)
		refused("both are held, each by its own node", x, y)
		locktest.Unlock(b, g)
		locktest.Unlock(b, h)

		held := locktest.Lock(b, others.Mutex(b.LockPath+"-a"))
		f := x.Acquire(locktest.Within(b), me)
		b.WaitNodes(2, "-a")
		refused("the owner waits for one", x, y)
		refused("the owner waits for one", x, s)
		locktest.Unlock(b, held)
		locktest.Unlock(b, locktest.Result(b, f))

		g = locktest.Lock(b, locks.MultiLock(x, y), me)
		refused("fewer members than it holds", x)
		refused("the members in another order", y, x)
		for _, member := range []*actors.Mutex{x, y} {
			_, err := member.Lock(locktest.Within(b), me)
			locktest.Is(b, err, actors.ErrDeadlock)
		}
		refused("more members than it holds", x, y, z)
		refused("more members than it holds", x, y, s)
		h = locktest.Lock(b, locks.MultiLock(z), me)
		refused("of two multi-locks", x, z)
		locktest.Unlock(b, g)
		locktest.Unlock(b, h)

		g = locktest.Lock(b, s, me)
		refused("a permit of a semaphore", s, x)
		refused("a permit of one semaphore", s, r)
		locktest.Unlock(b, g)
		g = locktest.Lock(b, locks.MultiLock(x, s), me)
		refused("there is no re-entry into a semaphore", x, s)
		locktest.Unlock(b, g)

		g = locktest.Lock(b, locks.MultiLock(s, r), me)
		refused("there is no re-entry into semaphores", s, r)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Lock(b, locks.MultiLock(x, y, z, s), actors.WithOwner("you")))
		b.WaitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases", "-r/locks", "-r/leases")
	})
}

// An owner that has lost a member and not released it is refused with the reason of the loss, as
// the member alone refuses it.
func TestMultiLockOfALostMember(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		me := actors.WithOwner("me")
		x, y, s := locks.Mutex(b.LockPath+"-a"), locks.Mutex(b.LockPath+"-b"), locks.Semaphore(b.LockPath+"-s", 2)
		conn := b.Client(b)
		g := locktest.Lock(b, x, me, actors.Revocable())
		locktest.Must(b, conn.Delete(g.Node(), -1))
		locktest.Closes(b, g.Done(), "the grant")
		for _, members := range [][]actors.Member{{x, y}, {y, x}, {x, s}, {s, y, x}} {
			for _, options := range [][]actors.Option{{me}, {me, actors.Try()}} {
				_, err := locks.MultiLock(members...).Lock(locktest.Within(b), options...)
				locktest.Is(b, err, actors.ErrNodeDeleted)
			}
		}
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNodeDeleted)
		locktest.Unlock(b, locktest.Lock(b, locks.MultiLock(x, y), me))
		locktest.Unlock(b, locktest.Lock(b, locks.MultiLock(x, s), me))

		// The session is lost.
		g = locktest.Lock(b, x, me)
		b.ExpireSession(locks)
		for _, members := range [][]actors.Member{{x, y}, {x, s}} {
			_, err := locks.MultiLock(members...).Lock(locktest.Within(b), me)
			locktest.Is(b, err, actors.ErrSessionLost)
		}
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrSessionLost)

		// A semaphore does not refuse an owner with a lost permit, as there is no re-entry.
		g = locktest.Lock(b, s, me, actors.Revocable())
		locktest.Must(b, conn.Delete(g.Node(), -1))
		locktest.Closes(b, g.Done(), "the grant of a permit")
		locktest.Unlock(b, locktest.Lock(b, locks.MultiLock(x, s), me))
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNodeDeleted)
		b.WaitNodes(0, "-a", "-b", "-c", "-s/locks", "-s/leases")
	})
}

package recipes

import (
	"errors"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A member's actor fails while the multi-lock is idle. The next request may be refused with the
// reason, and a later request gets new actors.
func TestMultiLockAfterAFailure(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config)
		for name, fail := range map[string]func(){
			"mutex":     func() { all[0].Panics(locks.Mutex(b.LockPath+"-a"), locktest.NoCreated) },
			"semaphore": func() { all[0].Panics(locks.Semaphore(b.LockPath+"-s", 1), locktest.NoCreated) },
		} {
			multi := locks.MultiLock(append(locktest.ThreeMembers(locks, b.LockPath), locks.Semaphore(b.LockPath+"-s", 1))...)
			locktest.Unlock(b, locktest.Lock(b, multi))
			fail()
			g, err := multi.Acquire(locktest.Within(b)).Wait(locktest.Within(b))
			if err != nil {
				locktest.Is(b, err, actors.ErrInternal)
				for g, err = multi.Lock(locktest.Within(b)); errors.Is(err, actors.ErrInternal); {
					g, err = multi.Lock(locktest.Within(b))
				}
			}
			if err != nil {
				b.Fatalf("after the failure of the %s: %v", name, err)
			}
			locktest.Unlock(b, g)
		}
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

package actors_test

import (
	"errors"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// A member's actor fails while the multi-lock is idle. The next request may be refused with the
// reason, and a later request gets new actors.
func TestMultiLockAfterAFailure(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		for name, fail := range map[string]func(){
			"mutex":     func() { actors.PanicActor(locks.Mutex(b.path+"-a"), 0, noCreated) },
			"semaphore": func() { actors.PanicActor(locks.Semaphore(b.path+"-s", 1), 0, noCreated) },
		} {
			multi := locks.MultiLock(append(b.threeMembers(locks), locks.Semaphore(b.path+"-s", 1))...)
			unlock(b, lock(b, multi))
			fail()
			g, err := multi.Acquire(within(b)).Wait(within(b))
			if err != nil {
				is(b, err, actors.ErrInternal)
				for g, err = multi.Lock(within(b)); errors.Is(err, actors.ErrInternal); {
					g, err = multi.Lock(within(b))
				}
			}
			if err != nil {
				b.Fatalf("after the failure of the %s: %v", name, err)
			}
			unlock(b, g)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// One member refuses at once, so that no node of the others is created. No later request waits for
// such a node.
func TestMultiLockRefusedByOneMember(t *testing.T) {
	each(t, func(b *testLock) {
		locks, other := b.locks(), b.locks()
		me := actors.WithOwner("me")
		read := lock(b, locks.RWMutex(b.path+"-b").Read(), me)
		for range 10 {
			for _, members := range [][]actors.Member{
				{locks.Mutex(b.path + "-a"), locks.RWMutex(b.path + "-b").Write(), locks.Mutex(b.path + "-c")},
				{locks.RWMutex(b.path + "-b").Write(), locks.Mutex(b.path + "-a"), locks.Mutex(b.path + "-c")},
			} {
				_, err := locks.MultiLock(members...).Lock(within(b), me)
				is(b, err, actors.ErrDeadlock)
			}
		}
		unlock(b, read)
		for _, end := range []string{"-a", "-c"} {
			held := lock(b, other.Mutex(b.path+end))
			f := locks.Mutex(b.path + end).Acquire(within(b))
			b.waitNodes(2, end)
			unlock(b, held)
			unlock(b, result(b, f))
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

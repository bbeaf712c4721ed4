package actors_test

import (
	"errors"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// A member's actor has failed while nobody wanted the multi-lock: who asks next is told,
// and who asks then gets fresh actors.
func TestMultiLockAfterAFailure(t *testing.T) {
	each(t, func(b *bed) {
		locks := b.locks()
		for name, poison := range map[string]func(){
			"mutex":     func() { actors.Poison(locks.Mutex(b.path + "-a")) },
			"semaphore": func() { actors.PoisonSemaphore(locks.Semaphore(b.path+"-s", 1), "semaphore") },
			"queue":     func() { actors.PoisonSemaphore(locks.Semaphore(b.path+"-s", 1), "queue") },
		} {
			multi := locks.MultiLock(append(b.three(locks), locks.Semaphore(b.path+"-s", 1))...)
			unlock(b, lock(b, multi))
			poison()
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
		b.cleaned()
	})
}

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// The limit of an owner's name is that of no other value, and the error does not have the name. All
// recipes have it.
func TestOwnerTooLong(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		for _, r := range locktest.Recipes {
			for size, accepted := range map[int]bool{1 << 10: true, 1<<10 + 1: false, 700_000: false} {
				g, err := v.HandleOf(locks, r).Lock(locktest.Within(v), actors.WithOwner(actors.Owner(strings.Repeat("x", size))))
				if accepted {
					locktest.Must(v, err)
					locktest.Unlock(v, g)
					continue
				}
				locktest.ExpectClear(v.T, err, fmt.Sprint(size))
				if err != nil && len(err.Error()) > 500 {
					v.Errorf("%s: an error of %d bytes: %.100s", r.Name, len(err.Error()), err.Error())
				}
			}
		}
		v.WaitNoNode()
		locktest.Must(v, locks.Close())
	})
}

func TestTooMuchData(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		fits := make([]byte, 500<<10)
		g := locktest.Lock(b, mu, actors.WithData(fits))
		waiting := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		for _, size := range []int{512<<10 + 1, 1 << 20, 10 << 20} {
			_, err := mu.Lock(locktest.Within(b), actors.WithData(make([]byte, size)))
			locktest.ExpectClear(b.T, err, "limit")
		}
		locktest.Pending(b, waiting)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, waiting))
	})
}

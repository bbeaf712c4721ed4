package actors_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A process that was paused reads the end from the clock, before any timer has fired.
func TestHoldAtMostByTheClock(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := locktest.Lock(b, b.Mutex(), actors.HoldAtMost(50*time.Millisecond))
		unlockAcquisition := actors.LockAcquisition(g) // so that the actor cannot end it
		<-time.After(60 * time.Millisecond)
		unlockAcquisition()
		locktest.Is(b, g.Err(), actors.ErrHoldExpired)
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrHoldExpired)
	})
}

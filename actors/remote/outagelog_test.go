package remote_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// An outage of ZooKeeper ends the leases of all clients. The log of the lock server says how many
// hold, and has no line for each of them. A client that is away has its line.
func TestOutageInTheLog(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		var log locktest.Log
		cfg := actors.Config{SessionTimeout: locktest.SessionTimeout, Dial: v.Dial, Logger: log.Logger()}
		locks, err := actors.Connect(locktest.Within(v), v.Fixture.Addr(), cfg)
		locktest.Must(v, err)
		v.Cleanup(func() { locks.Close() })
		var grants []*actors.Grant
		for _, path := range []string{"/a", "/b", "/c"} {
			grants = append(grants, locktest.Lock(v, locktest.ThroughServer(v, locks, cfg).Mutex(path)))
		}
		log.Take()
		restore := v.CutOff()
		for _, g := range grants {
			locktest.Closes(v, g.Done(), "the grant of a client")
		}
		<-time.After(time.Minute)
		if lines := log.With("lease of a client"); len(lines) > 0 {
			t.Errorf("%q", lines)
		}
		if lines := log.With("connection to ZooKeeper is lost", "held="); len(lines) == 0 {
			t.Error("no line says how many hold")
		}
		// Whose lease has ended has lost its lock with it, whatever the server knew first.
		if s := locks.Stats(); s.Lost[actors.ErrSessionLost] != 3 || s.Released != 0 {
			t.Error(locktest.StatsText(s))
		}
		restore()
	})
}

package api

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An actor releases, or cancels, as it stops. Neither the lock nor protoactor logs its end, though
// the answer finds nobody.
func TestActorReleasesAsItStops(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		for _, r := range locktest.Exclusive() {
			var log, systemLog locktest.Log
			system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond),
				actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return systemLog.Logger() }))
			locks := b.Locks(log.Config, func(cfg *actors.Config) { cfg.System = system })
			mu := b.HandleOf(locks, r)
			for _, owner := range []string{"", "alice"} {
				for _, inStopped := range []bool{false, true} {
					stopHolder(b, system, mu, r, owner, inStopped)
					stopWaiter(b, system, locks, mu, r, owner, inStopped)
				}
			}
			locktest.Must(b, locks.Close())
			system.Shutdown()
			for _, lines := range [][]string{log.With(locktest.HasEnded), systemLog.With("DeadLetter")} {
				if len(lines) > 0 {
					b.Errorf("%s: the log has %q", r.Name, lines)
				}
			}
		}
	})
}

func stopHolder(b *locktest.Fixture, system *actor.ActorSystem, mu locktest.Handle, r locktest.Recipe, owner string, inStopped bool) {
	b.Helper()
	granted := make(chan struct{}, 1)
	self := spawnOwner(system, locktest.PID(b, mu), r, owner, inStopped, granted, &messages.Release{RequestId: 1, Owner: owner})
	locktest.Receive(b, granted, "the grant of an actor")
	locktest.Must(b, system.Root.StopFuture(self).Wait())
	locktest.Unlock(b, locktest.Result(b, mu.Acquire(locktest.Within(b), r.Options...)))
}

func stopWaiter(b *locktest.Fixture, system *actor.ActorSystem, locks *actors.Locks, mu locktest.Handle, r locktest.Recipe, owner string, inStopped bool) {
	b.Helper()
	g := locktest.Result(b, mu.Acquire(locktest.Within(b), r.Options...))
	self := spawnOwner(system, locktest.PID(b, mu), r, owner, inStopped, nil, &messages.Cancel{RequestId: 1, Owner: owner})
	zktest.Eventually(b, zktest.TimeLimit, func() bool { return locks.Stats().Waiting == 1 }, "the actor waits")
	locktest.Must(b, system.Root.StopFuture(self).Wait())
	locktest.Unlock(b, g)
	locktest.Unlock(b, locktest.Result(b, mu.Acquire(locktest.Within(b), r.Options...)))
}

// spawnOwner starts an actor that acquires the lock, and sends the last message as it stops.
func spawnOwner(system *actor.ActorSystem, lock *actor.PID, r locktest.Recipe, owner string, inStopped bool, granted chan<- struct{}, last any) *actor.PID {
	return system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Request(lock, &messages.Acquire{RequestId: 1, Owner: owner, Kind: uint32(r.Kind), Permits: r.Permits})
		case *messages.Granted:
			granted <- struct{}{}
		case *actor.Stopping:
			if !inStopped {
				c.Request(lock, last)
			}
		case *actor.Stopped:
			if inStopped {
				c.Request(lock, last)
			}
		}
	}))
}

package actors_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An actor releases, or cancels, as it stops. Neither the lock nor protoactor logs its end, though
// the answer finds nobody.
func TestActorReleasesAsItStops(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		for _, r := range exclusive() {
			var log, systemLog logs
			system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond),
				actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return systemLog.logger() }))
			locks := b.locks(log.config, func(cfg *actors.Config) { cfg.System = system })
			mu := b.handle(locks, r)
			for _, owner := range []string{"", "alice"} {
				for _, inStopped := range []bool{false, true} {
					stopHolder(b, system, mu, r, owner, inStopped)
					stopWaiter(b, system, locks, mu, r, owner, inStopped)
				}
			}
			must(b, locks.Close())
			system.Shutdown()
			for _, lines := range [][]string{log.with(hasEnded), systemLog.with("DeadLetter")} {
				if len(lines) > 0 {
					b.Errorf("%s: the log has %q", r.name, lines)
				}
			}
		}
	})
}

func stopHolder(b *testLock, system *actor.ActorSystem, mu handle, r recipe, owner string, inStopped bool) {
	b.Helper()
	granted := make(chan struct{}, 1)
	self := spawnOwner(system, pid(b, mu), r, owner, inStopped, granted, &messages.Release{RequestId: 1, Owner: owner})
	receive(b, granted, "the grant of an actor")
	must(b, system.Root.StopFuture(self).Wait())
	unlock(b, result(b, mu.Acquire(within(b), r.options...)))
}

func stopWaiter(b *testLock, system *actor.ActorSystem, locks *actors.Locks, mu handle, r recipe, owner string, inStopped bool) {
	b.Helper()
	g := result(b, mu.Acquire(within(b), r.options...))
	self := spawnOwner(system, pid(b, mu), r, owner, inStopped, nil, &messages.Cancel{RequestId: 1, Owner: owner})
	zktest.Eventually(b, timeLimit, func() bool { return locks.Stats().Waiting == 1 }, "the actor waits")
	must(b, system.Root.StopFuture(self).Wait())
	unlock(b, g)
	unlock(b, result(b, mu.Acquire(within(b), r.options...)))
}

// spawnOwner starts an actor that acquires the lock, and sends the last message as it stops.
func spawnOwner(system *actor.ActorSystem, lock *actor.PID, r recipe, owner string, inStopped bool, granted chan<- struct{}, last any) *actor.PID {
	return system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Request(lock, &messages.Acquire{RequestId: 1, Owner: owner, Kind: uint32(r.kind), Permits: r.permits})
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

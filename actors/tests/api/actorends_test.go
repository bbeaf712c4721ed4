package api

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An actor that has ended before the lock gets its Acquire is not granted the lock.
func TestActorEndedBefore(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, len(locktest.Recipes))
		locks := b.Locks(config)
		for i, r := range locktest.Recipes {
			alice, mu := all[i], b.HandleOf(locks, r)
			alice.Stop()
			alice.Send(locktest.PID(b, mu), &messages.Acquire{RequestId: 1, Kind: uint32(r.Kind), Permits: r.Permits})
			g, err := mu.Lock(locktest.Within(b), r.Options...)
			if err != nil {
				b.Errorf("%s: %v", r.Name, err)
				continue
			}
			locktest.Unlock(b, g)
		}
		b.WaitNoNode()
	})
}

// An actor that its supervisor stops loses its lock; one that it restarts keeps it.
func TestActorFails(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		system := all[0].System
		mu := b.Mutex(config)
		to := locktest.PID(b, mu)
		for directive, keeps := range map[actor.Directive]bool{actor.StopDirective: false, actor.RestartDirective: true} {
			inbox := make(chan any, 10)
			strategy := actor.NewOneForOneStrategy(1, time.Minute, func(any) actor.Directive { return directive })
			self := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				switch msg := c.Message().(type) {
				case *messages.Granted, *messages.Released:
					inbox <- msg
				case *actor.Restarting:
					inbox <- msg
				case error:
					panic(msg)
				}
			}, actor.WithGuardian(strategy)))
			worker := &locktest.OwnerActor{T: b, System: system, Self: self, Inbox: inbox}
			worker.Send(to, &messages.Acquire{RequestId: 1})
			worker.Granted(1)
			waiting := mu.Acquire(locktest.Within(b))
			b.WaitNodes(2)
			system.Root.Send(self, actor.ErrTimeout)
			if keeps {
				locktest.ExpectMessage[*actor.Restarting](worker)
				locktest.Pending(b, waiting)
				worker.Send(to, &messages.Release{RequestId: 1})
				worker.Released(1, 0)
			}
			locktest.Unlock(b, locktest.Result(b, waiting))
			worker.Stop()
		}
	})
}

// A request ends with the actor that has sent it, and not with another actor of the same owner.
func TestActorEndsBesideOwner(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		mu := b.Mutex(config)
		to := locktest.PID(b, mu)
		alice.Send(to, &messages.Acquire{RequestId: 1, Owner: "both"})
		alice.Granted(1)
		bob.Send(to, &messages.Acquire{RequestId: 2, Owner: "both"})
		bob.Granted(2)
		waiting := mu.Acquire(locktest.Within(b))
		alice.Stop()
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			bob.Send(to, &messages.Acquire{RequestId: 3, Owner: "both"})
			bob.Granted(3)
			bob.Send(to, &messages.Release{RequestId: 3, Owner: "both"})
			return locktest.ExpectMessage[*messages.Released](bob).StillHeld == 1
		}, "the lock has noticed the end")
		locktest.Pending(b, waiting)
		bob.Send(to, &messages.Release{RequestId: 1, Owner: "both"})
		bob.Refused(1, messages.Reason_NOT_HELD)
		bob.Send(to, &messages.Release{RequestId: 2, Owner: "both"})
		bob.Released(2, 0)
		locktest.Unlock(b, locktest.Result(b, waiting))
	})
}

// The end of an actor that has released its locks is not logged.
func TestActorReleasesAndStops(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		config, all := locktest.OwnerActors(b.T, 1)
		system := all[0].System
		mu := b.Mutex(config, log.Config)
		to := locktest.PID(b, mu)
		const n = 100
		done := make(chan struct{}, n)
		for range n {
			system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				switch msg := c.Message().(type) {
				case *actor.Started:
					c.Request(to, &messages.Acquire{RequestId: 1})
				case *messages.Granted:
					c.Request(to, &messages.Release{RequestId: msg.RequestId})
					c.Stop(c.Self())
				case *actor.Stopped:
					done <- struct{}{}
				}
			}))
		}
		for range n {
			locktest.Receive(b, done, "the end of an actor")
		}
		locktest.Unlock(b, locktest.Lock(b, mu))
		if lines := log.With(locktest.HasEnded); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// All requests of an actor cost one watch, which ends soon after the last of them.
func TestActorIsWatchedOnce(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, w := locktest.NewRemoteOwner(b, "worker")
		locks := b.Locks(config, locktest.IdleTimeout(10*time.Millisecond))
		to := locktest.PID(b, locks.Semaphore(b.LockPath, 1000))
		const n = 100
		for id := range uint64(n) {
			w.Send(to, &messages.Acquire{RequestId: id})
			w.Granted(id)
		}
		for id := range uint64(n) {
			if w.Unwatches.Load() > 0 {
				b.Fatal("the watch has ended before the last request")
			}
			w.Send(to, &messages.Release{RequestId: id})
			w.Released(id, 0)
		}
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return w.Unwatches.Load() == 1 }, "the watch ends")
		if n := w.Watches.Load(); n != 1 {
			b.Errorf("%d watches", n)
		}
		// The next request begins another watch, which ends with the locks.
		w.Send(to, &messages.Acquire{RequestId: 1})
		w.Granted(1)
		locktest.Must(b, locks.Close())
		locktest.ExpectMessage[*messages.Lost](&w.OwnerActor)
		if w.Watches.Load() != 2 || w.Unwatches.Load() != 2 {
			b.Errorf("%d watches, %d ended", w.Watches.Load(), w.Unwatches.Load())
		}
		b.WaitSemaphore(0, 0)
	})
}

// The system of a remote actor is no longer reachable.
func TestRemoteActorEnds(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, w := locktest.NewRemoteOwner(b, "worker")
		mu := b.Mutex(config)
		w.Send(locktest.PID(b, mu), &messages.Acquire{RequestId: 1, Owner: "remote"})
		w.Granted(1)
		waiting := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		watcher := w.Watcher.Load()
		process, _ := w.System.ProcessRegistry.Get(watcher)
		process.SendSystemMessage(watcher, &actor.Terminated{Who: w.Self, Why: actor.TerminatedReason_AddressTerminated})
		locktest.Unlock(b, locktest.Result(b, waiting))
		w.Send(locktest.PID(b, mu), &messages.Acquire{RequestId: 1}) // it is back, and the lock has forgotten it
		locktest.ExpectMessage[*messages.Refused](&w.OwnerActor)
		w.Granted(1)
		if w.Watches.Load() != 2 {
			b.Errorf("%d watches", w.Watches.Load())
		}
		w.Send(locktest.PID(b, mu), &messages.Release{RequestId: 1})
		w.Released(1, 0)
	})
}

// Actors end before and after their grant, with and without a release.
func TestShortLivedActors(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		config, all := locktest.OwnerActors(b.T, 1)
		system := all[0].System
		to := locktest.PID(b, b.Mutex(config, log.Config))
		const n = 200
		done := make(chan struct{}, n)
		for i := range n {
			system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				switch c.Message().(type) {
				case *actor.Started:
					c.Request(to, &messages.Acquire{RequestId: 1})
					if i%3 == 1 {
						c.Stop(c.Self())
					}
				case *messages.Granted:
					if i%3 == 2 {
						c.Request(to, &messages.Release{RequestId: 1})
					}
					c.Stop(c.Self())
				case *actor.Stopped:
					done <- struct{}{}
				}
			}))
		}
		for range n {
			locktest.Receive(b, done, "the end of an actor")
		}
		b.WaitNodes(0)
		if lines := log.With("message that it does not know"); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// The end of an actor made with package host ends its requests, too.
func TestHostedActorEnds(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		mu := b.Mutex(config, func(cfg *actors.Config) { cfg.MaxRequestsPerLock = 2 })
		to := messages.LockRef{To: host.Sender{System: all[0].System, PID: locktest.PID(b, mu)}}
		mine := host.NewSystem(nil, nil) // not the lock's system
		defer mine.Close()
		for _, owner := range []string{"", "hosted"} {
			worker := hostActor{received: make(chan any, 10), stopped: make(chan struct{})}
			self := mine.Start("worker", func(*host.Ref) host.Actor { return worker })
			to.SendAcquire(&messages.Acquire{RequestId: 1, Owner: owner}, self)
			if _, granted := (<-worker.received).(*messages.Granted); !granted {
				b.Fatal("the actor does not get the lock")
			}
			waiting := mu.Acquire(locktest.Within(b))
			b.WaitNodes(2)
			locktest.Is(b, locktest.ErrOf(mu.Lock(locktest.Within(b))), actors.ErrLimit) // which counts it
			if owner != "" {                                                             // any actor may release for a named owner
				to.SendRelease(&messages.Release{RequestId: 1, Owner: owner}, self)
			}
			self.Stop()
			locktest.Closes(b, worker.stopped, "the actor")
			locktest.Unlock(b, locktest.Result(b, waiting))
		}
	})
}

type hostActor struct {
	received chan any
	stopped  chan struct{}
}

func (h hostActor) Receive(_ ask.Recipient, msg any) { h.received <- msg }
func (h hostActor) Stopped(any)                      { close(h.stopped) }
func (h hostActor) Refuse(ask.Recipient, any)        {}

package actors_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const hasEnded = "actor has ended"

// An actor that has ended before the lock gets its Acquire is not granted the lock.
func TestActorEndedBefore(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, len(recipes))
		locks := b.locks(config)
		for i, r := range recipes {
			alice, mu := all[i], b.handle(locks, r)
			alice.stop()
			alice.send(pid(b, mu), &messages.Acquire{RequestId: 1, Kind: uint32(r.kind), Permits: r.permits})
			g, err := mu.Lock(within(b), r.options...)
			if err != nil {
				b.Errorf("%s: %v", r.name, err)
				continue
			}
			unlock(b, g)
		}
		b.waitNoNode()
	})
}

// An actor that its supervisor stops loses its lock; one that it restarts keeps it.
func TestActorFails(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		system := all[0].system
		mu := b.mutex(config)
		to := pid(b, mu)
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
			worker := &testActor{t: b, system: system, self: self, inbox: inbox}
			worker.send(to, &messages.Acquire{RequestId: 1})
			worker.granted(1)
			waiting := mu.Acquire(within(b))
			b.waitNodes(2)
			system.Root.Send(self, actor.ErrTimeout)
			if keeps {
				expectMessage[*actor.Restarting](worker)
				pending(b, waiting)
				worker.send(to, &messages.Release{RequestId: 1})
				worker.released(1, 0)
			}
			unlock(b, result(b, waiting))
			worker.stop()
		}
	})
}

// A request ends with the actor that has sent it, and not with another actor of the same owner.
func TestActorEndsBesideOwner(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		mu := b.mutex(config)
		to := pid(b, mu)
		alice.send(to, &messages.Acquire{RequestId: 1, Owner: "both"})
		alice.granted(1)
		bob.send(to, &messages.Acquire{RequestId: 2, Owner: "both"})
		bob.granted(2)
		waiting := mu.Acquire(within(b))
		alice.stop()
		zktest.Eventually(b, timeLimit, func() bool {
			bob.send(to, &messages.Acquire{RequestId: 3, Owner: "both"})
			bob.granted(3)
			bob.send(to, &messages.Release{RequestId: 3, Owner: "both"})
			return expectMessage[*messages.Released](bob).StillHeld == 1
		}, "the lock has noticed the end")
		pending(b, waiting)
		bob.send(to, &messages.Release{RequestId: 1, Owner: "both"})
		bob.refused(1, messages.Reason_NOT_HELD)
		bob.send(to, &messages.Release{RequestId: 2, Owner: "both"})
		bob.released(2, 0)
		unlock(b, result(b, waiting))
	})
}

// The end of an actor that has released its locks is not logged.
func TestActorReleasesAndStops(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		config, all := testActors(b.T, 1)
		system := all[0].system
		mu := b.mutex(config, log.config)
		to := pid(b, mu)
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
			receive(b, done, "the end of an actor")
		}
		unlock(b, lock(b, mu))
		if lines := log.with(hasEnded); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// All requests of an actor cost one watch, which ends soon after the last of them.
func TestActorIsWatchedOnce(t *testing.T) {
	each(t, func(b *testLock) {
		config, w := newRemoteActor(b, "worker")
		locks := b.locks(config, idle(10*time.Millisecond))
		to := pid(b, locks.Semaphore(b.path, 1000))
		const n = 100
		for id := range uint64(n) {
			w.send(to, &messages.Acquire{RequestId: id})
			w.granted(id)
		}
		for id := range uint64(n) {
			if w.unwatches.Load() > 0 {
				b.Fatal("the watch has ended before the last request")
			}
			w.send(to, &messages.Release{RequestId: id})
			w.released(id, 0)
		}
		zktest.Eventually(b, timeLimit, func() bool { return w.unwatches.Load() == 1 }, "the watch ends")
		if n := w.watches.Load(); n != 1 {
			b.Errorf("%d watches", n)
		}
		// The next request begins another watch, which ends with the locks.
		w.send(to, &messages.Acquire{RequestId: 1})
		w.granted(1)
		must(b, locks.Close())
		expectMessage[*messages.Lost](&w.testActor)
		if w.watches.Load() != 2 || w.unwatches.Load() != 2 {
			b.Errorf("%d watches, %d ended", w.watches.Load(), w.unwatches.Load())
		}
		b.waitSemaphore(0, 0)
	})
}

// The system of a remote actor is no longer reachable.
func TestRemoteActorEnds(t *testing.T) {
	each(t, func(b *testLock) {
		config, w := newRemoteActor(b, "worker")
		mu := b.mutex(config)
		w.send(pid(b, mu), &messages.Acquire{RequestId: 1, Owner: "remote"})
		w.granted(1)
		waiting := mu.Acquire(within(b))
		b.waitNodes(2)
		watcher := w.watcher.Load()
		process, _ := w.system.ProcessRegistry.Get(watcher)
		process.SendSystemMessage(watcher, &actor.Terminated{Who: w.self, Why: actor.TerminatedReason_AddressTerminated})
		unlock(b, result(b, waiting))
		w.send(pid(b, mu), &messages.Acquire{RequestId: 1}) // it is back, and the lock has forgotten it
		expectMessage[*messages.Refused](&w.testActor)
		w.granted(1)
		if w.watches.Load() != 2 {
			b.Errorf("%d watches", w.watches.Load())
		}
		w.send(pid(b, mu), &messages.Release{RequestId: 1})
		w.released(1, 0)
	})
}

// Actors end before and after their grant, with and without a release.
func TestShortLivedActors(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		config, all := testActors(b.T, 1)
		system := all[0].system
		to := pid(b, b.mutex(config, log.config))
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
			receive(b, done, "the end of an actor")
		}
		b.waitNodes(0)
		if lines := log.with("does not know"); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// The end of an actor made with package host ends its requests, too.
func TestHostedActorEnds(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		mu := b.mutex(config, func(cfg *actors.Config) { cfg.MaxRequestsPerLock = 2 })
		to := messages.LockRef{To: host.Sender{System: all[0].system, PID: pid(b, mu)}}
		mine := host.NewSystem(nil, nil) // not the lock's system
		defer mine.Close()
		for _, owner := range []string{"", "hosted"} {
			worker := hostActor{received: make(chan any, 10), stopped: make(chan struct{})}
			self := mine.Start("worker", func(*host.Ref) host.Actor { return worker })
			to.SendAcquire(&messages.Acquire{RequestId: 1, Owner: owner}, self)
			if _, granted := (<-worker.received).(*messages.Granted); !granted {
				b.Fatal("the actor does not get the lock")
			}
			waiting := mu.Acquire(within(b))
			b.waitNodes(2)
			is(b, errOf(mu.Lock(within(b))), actors.ErrLimit) // which counts it
			if owner != "" {                                  // any actor may release for a named owner
				to.SendRelease(&messages.Release{RequestId: 1, Owner: owner}, self)
			}
			self.Stop()
			closes(b, worker.stopped, "the actor")
			unlock(b, result(b, waiting))
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

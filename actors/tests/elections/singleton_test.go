package elections

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// singletonTest has the singletons of a test, and gets events of their children.
type singletonTest struct {
	*locktest.Fixture
	system *actor.ActorSystem
	log    locktest.Log
	events chan childEvent
}

// childEvent reports that a child has started, is stopping or has stopped.
type childEvent struct {
	what      string
	singleton string
	term      *actors.SingletonTerm
	token     actors.Token
	pid       *actor.PID
	resume    chan struct{} // closed to let a stopping child end
}

func newSingletonTest(b *locktest.Fixture) *singletonTest {
	s := &singletonTest{Fixture: b, events: make(chan childEvent, 1000)}
	s.system = actor.NewActorSystem(locktest.WithoutLog...)
	b.Cleanup(s.system.Shutdown)
	return s
}

// locks returns Locks on a connection of their own, in the actor system of the test.
func (s *singletonTest) locks(configure ...func(*actors.Config)) *actors.Locks {
	s.Helper()
	return s.Fixture.Locks(append(configure, s.log.Config, func(cfg *actors.Config) { cfg.System = s.system })...)
}

// props returns the props of a singleton whose children stop when resume is closed.
func (s *singletonTest) props(name string, e *actors.Election) *actor.Props {
	return e.Singleton(func(term *actors.SingletonTerm) *actor.Props {
		ev := childEvent{singleton: name, term: term, token: term.Token(), resume: make(chan struct{})}
		send := func(c actor.Context, what string) {
			ev.what, ev.pid = what, c.Self()
			s.events <- ev
		}
		return actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *actor.Started:
				send(c, "started")
			case *actor.Stopping:
				send(c, "stopping")
				<-ev.resume
			case *actor.Stopped:
				send(c, "stopped")
			case string:
				switch msg {
				case "end":
					c.Stop(c.Self())
				case "end all":
					c.Stop(c.Parent())
				case "fail":
					panic(msg)
				}
			}
		})
	})
}

// spawn starts a singleton, and waits until it has a node.
func (s *singletonTest) spawn(name string, e *actors.Election) *actor.PID {
	s.Helper()
	before := len(s.LockNodes())
	self := s.system.Root.Spawn(s.props(name, e))
	s.Cleanups = append(s.Cleanups, func() { s.stop(self) })
	s.WaitNodes(before + 1)
	return self
}

// stop stops a singleton, and lets its child stop.
func (s *singletonTest) stop(self *actor.PID) {
	s.Helper()
	future, ended := s.system.Root.StopFuture(self), make(chan struct{})
	go func() { future.Wait(); close(ended) }()
	for {
		select {
		case ev := <-s.events:
			if ev.what == "stopping" {
				close(ev.resume)
			}
		case <-locktest.Within(s).Done():
			s.Fatal("a singleton does not stop")
		case <-ended:
			return
		}
	}
}

// expect waits for the next event.
func (s *singletonTest) expect(what, singleton string) childEvent {
	s.Helper()
	ev, _ := locktest.Receive(s, s.events, fmt.Sprintf("%s of the child of %s", what, singleton))
	if ev.what != what || ev.singleton != singleton {
		s.Fatalf("the child of %s: %s, want of %s: %s", ev.singleton, ev.what, singleton, what)
	}
	return ev
}

// expectNothing checks that there is no further event.
func (s *singletonTest) expectNothing() {
	s.Helper()
	select {
	case ev := <-s.events:
		s.Fatalf("the child of %s: %s", ev.singleton, ev.what)
	default:
	}
}

// waitEnded waits until an actor has ended.
func (s *singletonTest) waitEnded(self *actor.PID) {
	s.Helper()
	zktest.Eventually(s, zktest.TimeLimit, func() bool { _, is := s.system.ProcessRegistry.Get(self); return !is }, "the actor has ended")
}

// expectReleased checks that no singleton has ended without having released or cancelled its
// request.
func (s *singletonTest) expectReleased() {
	s.Helper()
	if lines := s.log.With(locktest.HasEnded); len(lines) > 0 {
		s.Errorf("the log has %q", lines)
	}
}

// Singletons of two processes lead in turn, and resign in each way. The next leads only after the
// child has stopped.
func TestSingleton(t *testing.T) {
	eachForm(t, func(b *locktest.Fixture, form ...actors.ElectionOption) {
		s := newSingletonTest(b)
		here, there := s.locks(), s.locks()
		a := s.spawn("a", here.Election(s.LockPath, append(form, actors.AsID("a"))...))
		first := s.expect("started", "a")
		z := s.spawn("z", there.Election(s.LockPath, append(form, actors.AsID("z"), actors.ResignOnRevoke())...))
		last := first.token
		turn := func(from, to string, leave func(child childEvent), now childEvent) childEvent {
			s.Helper()
			leave(now)
			s.expect("stopping", from)
			s.WaitLeader(here.Election(s.LockPath, form...), from)
			s.expectNothing()
			close(now.resume)
			s.expect("stopped", from)
			next := s.expect("started", to)
			locktest.ExpectIncreasing(s, last, next.token)
			last = next.token
			s.WaitNodes(2)
			return next
		}
		now := turn("a", "z", func(childEvent) { s.system.Root.Send(a, actors.Resign{}) }, first)
		now = turn("z", "a", func(child childEvent) { s.system.Root.Send(child.pid, "end") }, now)
		now = turn("a", "z", func(child childEvent) { s.system.Root.Stop(child.pid) }, now)
		now = turn("z", "a", func(childEvent) {
			_, err := there.Revoke(locktest.Within(s), s.WaitLeader(here.Election(s.LockPath, form...), "z").Node, 0)
			locktest.Must(s, err)
		}, now)
		s.system.Root.Send(now.pid, "fail") // the singleton, its supervisor, restarts it
		if again := s.expect("started", "a"); again.token != now.token {
			s.Errorf("the term has another token after a restart of the child: %v, %v", again.token, now.token)
		}
		s.system.Root.Send(z, actors.Resign{}) // which does not lead
		s.expectNothing()
		s.expectReleased()
	})
}

// The session of a leader ends: the singleton stops its child at once, and another leads. The
// singleton queues again when its child has stopped.
func TestSingletonLosesSession(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := newSingletonTest(b)
		here, there := s.locks(), s.locks()
		s.spawn("a", here.Election(s.LockPath))
		first := s.expect("started", "a")
		s.spawn("z", there.Election(s.LockPath))
		s.ExpireSession(here)
		events := map[string]childEvent{}
		for range 2 {
			ev, _ := locktest.Receive(s, s.events, "an event")
			events[ev.singleton+" "+ev.what] = ev
		}
		second, ok := events["z started"]
		if _, stopping := events["a stopping"]; !ok || !stopping || second.token.Compare(first.token) <= 0 {
			s.Fatalf("after the loss: %v", events)
		}
		s.WaitNodes(1)
		s.expectNothing()
		close(first.resume)
		s.expect("stopped", "a")
		s.WaitNodes(2)
		s.expectReleased()
	})
}

// A singleton that is stopped, also by its child, resigns after its child has stopped.
func TestSingletonStops(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := newSingletonTest(b)
		locks := s.locks()
		for _, stop := range []func(self *actor.PID, child childEvent){
			func(self *actor.PID, _ childEvent) { s.system.Root.Stop(self) },
			func(self *actor.PID, _ childEvent) { s.system.Root.Poison(self) },
			func(_ *actor.PID, child childEvent) { s.system.Root.Send(child.pid, "end all") },
		} {
			self := s.spawn("a", locks.Election(s.LockPath))
			child := s.expect("started", "a")
			waiter := s.spawn("w", locks.Election(s.LockPath))
			stop(self, child)
			s.expect("stopping", "a")
			s.expectNothing()
			s.WaitNodes(2)
			close(child.resume)
			s.expect("stopped", "a")
			s.waitEnded(self)
			next := s.expect("started", "w")
			s.WaitNodes(1)
			s.system.Root.Stop(waiter)
			close(next.resume)
			s.waitEnded(waiter)
			s.expect("stopping", "w")
			s.expect("stopped", "w")
			s.WaitNodes(0)
		}
		// A singleton that waits leaves the queue.
		g := locktest.Lock(s, locks.Mutex(s.LockPath))
		waiter := s.spawn("w", locks.Election(s.LockPath))
		s.system.Root.Stop(waiter)
		s.WaitNodes(1)
		locktest.Unlock(s, g)
		s.expectNothing()
		s.expectReleased()
	})
}

// A supervisor restarts a singleton together with a sibling that has failed, while its child takes
// a while to stop. Then there is one request and, in a new term, one child.
func TestSingletonIsRestarted(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := newSingletonTest(b)
		e := s.locks().Election(s.LockPath)
		always := actor.NewAllForOneStrategy(100, time.Minute, func(any) actor.Directive { return actor.RestartDirective })
		sibling := make(chan *actor.PID, 10)
		parent := s.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, is := c.Message().(*actor.Started); is {
				c.Spawn(s.props("a", e))
				sibling <- c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
					if c.Message() == "fail" {
						panic("fail")
					}
				}))
			}
		}, actor.WithSupervisor(always)))
		s.Cleanups = append(s.Cleanups, func() { s.stop(parent) })
		failing := <-sibling
		child := s.expect("started", "a")
		for range 3 {
			waiting := s.Fixture.Mutex().Acquire(locktest.Within(s))
			s.WaitNodes(2)
			s.system.Root.Send(failing, "fail")
			s.expect("stopping", "a")
			locktest.Pending(s, waiting)
			close(child.resume)
			s.expect("stopped", "a")
			g := locktest.Result(s, waiting)
			s.WaitNodes(2)
			s.expectNothing()
			locktest.Unlock(s, g)
			next := s.expect("started", "a")
			locktest.ExpectIncreasing(s, child.token, next.token)
			child = next
			s.WaitNodes(1)
		}
		s.expectReleased()
	})
}

// A final error stops a singleton, and the log has the error.
func TestSingletonFails(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := newSingletonTest(b)
		foreign := b.Locks(s.log.Config) // of another actor system
		for i, e := range []*actors.Election{s.locks().Election("relative"), foreign.Election(s.LockPath)} {
			s.waitEnded(s.system.Root.Spawn(s.props("a", e)))
			if lines := s.log.With("cannot take part"); len(lines) != i+1 {
				s.Errorf("the log has %q", lines)
			}
		}
		// Close is no failure.
		locks := s.locks()
		self := s.spawn("a", locks.Election(s.LockPath))
		child := s.expect("started", "a")
		locktest.Must(s, locks.Close())
		s.expect("stopping", "a")
		close(child.resume)
		s.expect("stopped", "a")
		s.waitEnded(self)
		if lines := s.log.With("cannot take part"); len(lines) != 2 {
			s.Errorf("the log has %q", lines)
		}
	})
}

// A singleton repeats a request that has failed for a passing reason. With StopOnSuspended it
// resigns as soon as the connection is lost.
func TestSingletonRetries(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		s := newSingletonTest(b)
		locks := s.locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.StopOnSuspended = 1, true })
		g := locktest.Lock(s, locks.Mutex(s.LockPath))
		self := s.system.Root.Spawn(s.props("a", locks.Election(s.LockPath)))
		s.Cleanups = append(s.Cleanups, func() { s.stop(self) })
		zktest.Eventually(s, zktest.TimeLimit, func() bool { return len(s.log.With("request of a participant")) > 1 }, "two repetitions")
		locktest.Unlock(s, g)
		child := s.expect("started", "a")
		s.Embedded().DropConnections()
		s.expect("stopping", "a")
		close(child.resume)
		s.expect("stopped", "a")
		locktest.ExpectIncreasing(s, child.token, s.expect("started", "a").token)
		s.expectReleased()
	})
}

// Two singletons of one process: the second is granted the lock while the connection is lost, and
// stops its child.
func TestSingletonsWithoutConnection(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.AwaitDeadLetters()
		s := newSingletonTest(v.Fixture)
		locks := s.locks(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		s.spawn("a", locks.Election(s.LockPath))
		first := s.expect("started", "a")
		s.spawn("z", locks.Election(s.LockPath))
		restore := v.CutOff()
		s.expect("stopping", "a")
		close(first.resume)
		s.expect("stopped", "a")
		second := s.expect("started", "z")
		s.expect("stopping", "z")
		close(second.resume)
		s.expect("stopped", "z")
		synctest.Wait()
		s.expectNothing()
		restore()
		third := s.expect("started", "a")
		locktest.ExpectIncreasing(s, first.token, second.token, third.token)
		s.Clean()
	})
}

package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// singletonTest has the singletons of a test, and hears of their children.
type singletonTest struct {
	*testLock
	system *actor.ActorSystem
	log    logs
	heard  chan childEvent
}

// childEvent is what has become of a child: started, stopping or stopped.
type childEvent struct {
	what      string
	singleton string
	token     actors.Token
	pid       *actor.PID
	goOn      chan struct{} // closed to let a child end that is stopping
}

func newSingletonTest(b *testLock) *singletonTest {
	s := &singletonTest{testLock: b, heard: make(chan childEvent, 1000)}
	s.system = actor.NewActorSystem(quietly...)
	b.Cleanup(s.system.Shutdown)
	return s
}

// locks are of a session of its own, in the system of the stage.
func (s *singletonTest) locks(configure ...func(*actors.Config)) *actors.Locks {
	s.Helper()
	return s.testLock.locks(append(configure, s.log.config, func(cfg *actors.Config) { cfg.System = s.system })...)
}

// props are of a singleton whose children take until goOn to stop.
func (s *singletonTest) props(name string, e *actors.Election) *actor.Props {
	return e.Singleton(func(token actors.Token) *actor.Props {
		ev := childEvent{singleton: name, token: token, goOn: make(chan struct{})}
		say := func(c actor.Context, what string) {
			ev.what, ev.pid = what, c.Self()
			s.heard <- ev
		}
		return actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *actor.Started:
				say(c, "started")
			case *actor.Stopping:
				say(c, "stopping")
				<-ev.goOn
			case *actor.Stopped:
				say(c, "stopped")
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
	before := len(s.nodes())
	self := s.system.Root.Spawn(s.props(name, e))
	s.cleanups = append(s.cleanups, func() { s.stopped(self) })
	s.waitNodes(before + 1)
	return self
}

// stopped stops a singleton whose child, if any, may stop.
func (s *singletonTest) stopped(self *actor.PID) {
	s.Helper()
	future, ended := s.system.Root.StopFuture(self), make(chan struct{})
	go func() { future.Wait(); close(ended) }()
	for {
		select {
		case ev := <-s.heard:
			if ev.what == "stopping" {
				close(ev.goOn)
			}
		case <-within(s).Done():
			s.Fatal("a singleton does not stop")
		case <-ended:
			return
		}
	}
}

// hears waits for the next event.
func (s *singletonTest) hears(what, singleton string) childEvent {
	s.Helper()
	ev, _ := receive(s, s.heard, fmt.Sprintf("%s of the child of %s", what, singleton))
	if ev.what != what || ev.singleton != singleton {
		s.Fatalf("the child of %s has %s, want of %s %s", ev.singleton, ev.what, singleton, what)
	}
	return ev
}

// silent checks that nothing has become of any child.
func (s *singletonTest) silent() {
	s.Helper()
	select {
	case ev := <-s.heard:
		s.Fatalf("the child of %s has %s", ev.singleton, ev.what)
	default:
	}
}

// gone waits until an actor has ended.
func (s *singletonTest) gone(self *actor.PID) {
	s.Helper()
	zktest.Eventually(s, waitLimit, func() bool { _, is := s.system.ProcessRegistry.Get(self); return !is }, "the actor has ended")
}

// properly checks that no singleton has ended without giving its request back.
func (s *singletonTest) properly() {
	s.Helper()
	if lines := s.log.with(hasEnded); len(lines) > 0 {
		s.Errorf("the log has %q", lines)
	}
}

// Singletons of two processes lead in turn, and resign in the ways there are. The next leads only
// after the child has terminated.
func TestSingleton(t *testing.T) {
	eachForm(t, func(b *testLock, form ...actors.ElectionOption) {
		s := newSingletonTest(b)
		here, there := s.locks(), s.locks()
		a := s.spawn("a", here.Election(s.path, append(form, actors.AsID("a"))...))
		first := s.hears("started", "a")
		z := s.spawn("z", there.Election(s.path, append(form, actors.AsID("z"), actors.ResignOnRevoke())...))
		last := first.token
		turn := func(from, to string, leave func(child childEvent), now childEvent) childEvent {
			s.Helper()
			leave(now)
			s.hears("stopping", from)
			s.waitLeader(here.Election(s.path, form...), from)
			s.silent()
			close(now.goOn)
			s.hears("stopped", from)
			next := s.hears("started", to)
			if next.token.Compare(last) <= 0 {
				s.Errorf("token %v after %v", next.token, last)
			}
			last = next.token
			s.waitNodes(2)
			return next
		}
		now := turn("a", "z", func(childEvent) { s.system.Root.Send(a, actors.Resign{}) }, first)
		now = turn("z", "a", func(child childEvent) { s.system.Root.Send(child.pid, "end") }, now)
		now = turn("a", "z", func(child childEvent) { s.system.Root.Stop(child.pid) }, now)
		now = turn("z", "a", func(childEvent) {
			_, err := there.Revoke(within(s), s.waitLeader(here.Election(s.path, form...), "z").Node, 0)
			must(s, err)
		}, now)
		s.system.Root.Send(now.pid, "fail") // its parent, which supervises it, starts it again
		if again := s.hears("started", "a"); again.token != now.token {
			s.Errorf("the term has another token after a restart of the child: %v, %v", again.token, now.token)
		}
		s.system.Root.Send(z, actors.Resign{}) // it does not lead
		s.silent()
		s.properly()
	})
}

// The session of a leader ends: the singleton stops its child at once, and another leads. The singleton
// queues again when its child has terminated.
func TestSingletonLosesSession(t *testing.T) {
	each(t, func(b *testLock) {
		s := newSingletonTest(b)
		here, there := s.locks(), s.locks()
		s.spawn("a", here.Election(s.path))
		first := s.hears("started", "a")
		s.spawn("z", there.Election(s.path))
		s.expire(here)
		heard := map[string]childEvent{}
		for range 2 {
			ev, _ := receive(s, s.heard, "an event")
			heard[ev.singleton+" "+ev.what] = ev
		}
		second, ok := heard["z started"]
		if _, stopping := heard["a stopping"]; !ok || !stopping || second.token.Compare(first.token) <= 0 {
			s.Fatalf("after the loss: %v", heard)
		}
		s.waitNodes(1)
		s.silent()
		close(first.goOn)
		s.hears("stopped", "a")
		s.waitNodes(2)
		s.properly()
	})
}

// A singleton that is stopped, or that its child stops, resigns after its child has terminated.
func TestSingletonStops(t *testing.T) {
	each(t, func(b *testLock) {
		s := newSingletonTest(b)
		locks := s.locks()
		for _, stop := range []func(self *actor.PID, child childEvent){
			func(self *actor.PID, _ childEvent) { s.system.Root.Stop(self) },
			func(self *actor.PID, _ childEvent) { s.system.Root.Poison(self) },
			func(_ *actor.PID, child childEvent) { s.system.Root.Send(child.pid, "end all") },
		} {
			self := s.spawn("a", locks.Election(s.path))
			child := s.hears("started", "a")
			waiter := s.spawn("w", locks.Election(s.path))
			stop(self, child)
			s.hears("stopping", "a")
			s.silent()
			s.waitNodes(2)
			close(child.goOn)
			s.hears("stopped", "a")
			s.gone(self)
			next := s.hears("started", "w")
			s.waitNodes(1)
			s.system.Root.Stop(waiter)
			close(next.goOn)
			s.gone(waiter)
			s.hears("stopping", "w")
			s.hears("stopped", "w")
			s.waitNodes(0)
		}
		// One that waits leaves the queue.
		g := lock(s, locks.Mutex(s.path))
		waiter := s.spawn("w", locks.Election(s.path))
		s.system.Root.Stop(waiter)
		s.waitNodes(1)
		unlock(s, g)
		s.silent()
		s.properly()
	})
}

// A supervisor restarts a singleton together with a sibling that failed, while its child takes its
// time to stop. Then there is one request and, in a new term, one child.
func TestSingletonIsRestarted(t *testing.T) {
	each(t, func(b *testLock) {
		s := newSingletonTest(b)
		e := s.locks().Election(s.path)
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
		s.cleanups = append(s.cleanups, func() { s.stopped(parent) })
		failing := <-sibling
		child := s.hears("started", "a")
		for range 3 {
			waiting := s.testLock.mutex().Acquire(within(s))
			s.waitNodes(2)
			s.system.Root.Send(failing, "fail")
			s.hears("stopping", "a")
			pending(s, waiting)
			close(child.goOn)
			s.hears("stopped", "a")
			g := result(s, waiting)
			s.waitNodes(2)
			s.silent()
			unlock(s, g)
			next := s.hears("started", "a")
			if next.token.Compare(child.token) <= 0 {
				s.Errorf("token %v after %v", next.token, child.token)
			}
			child = next
			s.waitNodes(1)
		}
		s.properly()
	})
}

// A final error stops a singleton, and the log has the error.
func TestSingletonFails(t *testing.T) {
	each(t, func(b *testLock) {
		s := newSingletonTest(b)
		foreign := b.locks(s.log.config) // of another actor system
		for i, e := range []*actors.Election{s.locks().Election("relative"), foreign.Election(s.path)} {
			s.gone(s.system.Root.Spawn(s.props("a", e)))
			if lines := s.log.with("cannot take part"); len(lines) != i+1 {
				s.Errorf("the log has %q", lines)
			}
		}
		// The end of Locks is no failure.
		locks := s.locks()
		self := s.spawn("a", locks.Election(s.path))
		child := s.hears("started", "a")
		must(s, locks.Close())
		s.hears("stopping", "a")
		close(child.goOn)
		s.hears("stopped", "a")
		s.gone(self)
		if lines := s.log.with("cannot take part"); len(lines) != 2 {
			s.Errorf("the log has %q", lines)
		}
	})
}

// A singleton repeats a request that failed for a time. With StopOnSuspended it resigns as soon as
// the connection is lost.
func TestSingletonRetries(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		s := newSingletonTest(b)
		locks := s.locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.StopOnSuspended = 1, true })
		g := lock(s, locks.Mutex(s.path))
		self := s.system.Root.Spawn(s.props("a", locks.Election(s.path)))
		s.cleanups = append(s.cleanups, func() { s.stopped(self) })
		zktest.Eventually(s, waitLimit, func() bool { return len(s.log.with("request of a participant")) > 1 }, "two repetitions")
		unlock(s, g)
		child := s.hears("started", "a")
		s.Embedded().DropConnections()
		s.hears("stopping", "a")
		close(child.goOn)
		s.hears("stopped", "a")
		if next := s.hears("started", "a"); next.token.Compare(child.token) <= 0 {
			s.Errorf("token %v after %v", next.token, child.token)
		}
		s.properly()
	})
}

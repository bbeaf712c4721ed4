package host_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// newWatchSystem returns a System of protoactor actors. The goroutines in which protoactor counts
// dead letters end after a millisecond.
func newWatchSystem(t *testing.T) *host.System {
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s := host.NewSystem(system, nil)
	t.Cleanup(func() { s.Close(); system.Shutdown() })
	return s
}

// observer starts an actor that forwards its messages to the inbox.
func observer(t *testing.T, s *host.System) (*host.Ref, inbox) {
	received := make(inbox, 100)
	p := newProbe(func(_ ask.Recipient, msg any) { received.Tell(msg) })
	ref := s.Start("observer", func(*host.Ref) host.Actor { return p })
	t.Cleanup(func() { ref.Stop(); p.end(t) })
	return ref, received
}

func idleActor(s *host.System) *actor.PID {
	return s.Actors.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
}

func identity(t *testing.T, from ask.Recipient) host.Identity {
	t.Helper()
	id, is := host.IdentityOf(from)
	if !is {
		t.Fatalf("%v is no actor", from)
	}
	return id
}

func TestWatch(t *testing.T) {
	s := newWatchSystem(t)
	ref, received := observer(t, s)
	hosted := func(name string) (*host.Ref, *probe) {
		p := newProbe(nil)
		return s.Start(name, func(*host.Ref) host.Actor { return p }), p
	}
	one, p := hosted("one")
	pid := idleActor(s)
	for _, c := range []struct {
		from ask.Recipient
		stop func()
	}{
		{one, func() { one.Stop(); p.end(t) }},
		{host.Sender{System: s.Actors, PID: pid}, func() { s.Actors.Root.Stop(pid) }},
	} {
		target := identity(t, c.from)
		if err := ref.Watch(target); err != nil {
			t.Fatal(err)
		}
		c.stop()
		if msg := received.next(t); msg != any(host.Terminated{Actor: target}) {
			t.Errorf("received %v", msg)
		}
		if err := ref.Watch(target); err != nil { // it has ended before
			t.Fatal(err)
		}
		if msg := received.next(t); msg != any(host.Terminated{Actor: target}) {
			t.Errorf("received %v of the second watch", msg)
		}
	}
	other, p2 := hosted("other")
	otherPID := idleActor(s)
	for _, from := range []ask.Recipient{other, host.Sender{System: s.Actors, PID: otherPID}} {
		if err := ref.Watch(identity(t, from)); err != nil {
			t.Fatal(err)
		}
		ref.Unwatch(identity(t, from))
	}
	other.Stop()
	p2.end(t)
	if err := s.Actors.Root.StopFuture(otherPID).Wait(); err != nil {
		t.Fatal(err)
	}
	ref.Tell("last")
	if msg := received.next(t); msg != "last" {
		t.Errorf("received %v although the watch was ended", msg)
	}
}

// Terminated arrives after all messages that the ended actor has sent.
func TestTerminatedIsLast(t *testing.T) {
	s := newWatchSystem(t)
	received := make(inbox, 1000)
	begin := make(chan struct{})
	p := newProbe(func(_ ask.Recipient, msg any) {
		if msg == "wait" {
			<-begin
		}
		received.Tell(msg)
	})
	ref := spawn(t, s, "observer", p)
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if n, ok := c.Message().(int); ok {
			c.Send(ref.PID(), n)
		}
	}))
	if err := ref.Watch(identity(t, host.Sender{System: s.Actors, PID: pid})); err != nil {
		t.Fatal(err)
	}
	ref.Tell("wait")
	const n = 100
	for i := range n {
		s.Actors.Root.Send(pid, i)
	}
	if err := s.Actors.Root.PoisonFuture(pid).Wait(); err != nil {
		t.Fatal(err)
	}
	close(begin)
	received.next(t)
	for i := range n {
		if msg := received.next(t); msg != i {
			t.Fatalf("received %v, want %d", msg, i)
		}
	}
	if _, ended := received.next(t).(host.Terminated); !ended {
		t.Error("Terminated is not the last message")
	}
	ref.Stop()
	p.end(t)
}

func TestIsFuture(t *testing.T) {
	s := newWatchSystem(t)
	future := actor.NewFuture(s.Actors, -1)
	actorPID, err := s.Actors.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "future$actor")
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[*actor.PID]bool{
		future.PID():                                     true,
		actor.NewPID("peer:1", "future$1"):               true,
		actor.NewPID("peer:1", "future$fzzzzzzzz~+"):     true,
		actor.NewPID(future.PID().Address, "future$~~~"): true, // timed out long ago
		actorPID:     false,
		idleActor(s): false,
		actor.NewPID("peer:1", "worker/future$1"):          false,
		actor.NewPID("peer:1", "future$"):                  false,
		actor.NewPID("peer:1", "future$worker-1"):          false,
		actor.NewPID("peer:1", "future$1/child"):           false,
		actor.NewPID("peer:1", "future$anActorOfThisName"): false,
	} {
		sender := host.Sender{System: s.Actors, PID: pid}
		if _, isActor := host.IdentityOf(sender); sender.IsFuture() != want || isActor == want {
			t.Errorf("%v: a future: %v, an actor: %v", pid, sender.IsFuture(), isActor)
		}
	}
	s.Actors.Root.Send(future.PID(), "done")
}

func TestAlias(t *testing.T) {
	s := newWatchSystem(t)
	ref, received := observer(t, s)
	alias, err := ref.Alias("tag")
	if err != nil {
		t.Fatal(err)
	}
	gone := actor.NewFuture(s.Actors, time.Nanosecond)
	if gone.Wait() == nil {
		t.Fatal("the future has not timed out")
	}
	s.Actors.Root.RequestWithCustomSender(gone.PID(), "answer", alias)
	if msg := received.next(t); msg != any(host.Undelivered{Tag: "tag"}) {
		t.Errorf("received %v", msg)
	}
	s.Actors.Root.Send(alias, "hello")
	if msg := received.next(t); msg != "hello" {
		t.Errorf("received %v", msg)
	}
	ref.EndAlias(alias)
	if _, there := s.Actors.ProcessRegistry.Get(alias); there {
		t.Error("the alias is still registered")
	}
	p := newProbe(nil)
	stopped := spawn(t, s, "stopped", p)
	stopped.Stop()
	p.end(t)
	if _, err := stopped.Alias(1); err == nil {
		t.Error("an actor that has stopped got an alias")
	}
}

// An actor may end before its watch begins, or while it is ended. protoactor logs no dead letter
// then.
func TestWatchOfEnded(t *testing.T) {
	s := newWatchSystem(t)
	ref, received := observer(t, s)
	if err := ref.Register(); err != nil {
		t.Fatal(err)
	}
	pid := idleActor(s)
	if err := s.Actors.Root.StopFuture(pid).Wait(); err != nil {
		t.Fatal(err)
	}
	s.Actors.EventStream.Subscribe(func(event any) {
		if letter, is := event.(*actor.DeadLetterEvent); is {
			t.Errorf("dead letter %v", letter.Message)
		}
	})
	ended := identity(t, host.Sender{System: s.Actors, PID: pid})
	if err := ref.Watch(ended); err != nil {
		t.Fatal(err)
	}
	if m := <-received; m != (host.Terminated{Actor: ended}) {
		t.Errorf("received %v", m)
	}
	ref.Unwatch(ended)
}

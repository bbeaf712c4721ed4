package host_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// brief is a system whose goroutines that count dead letters end soon.
func brief(t *testing.T) *host.System {
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s := host.NewSystem(system, nil)
	t.Cleanup(func() { s.Close(); system.Shutdown() })
	return s
}

// observer is an actor that passes on what it receives.
func observer(t *testing.T, s *host.System) (*host.Ref, inbox) {
	heard := make(inbox, 100)
	p := newProbe(func(_ ask.Recipient, msg any) { heard.Tell(msg) })
	ref := s.Start("observer", func(*host.Ref) host.Actor { return p })
	t.Cleanup(func() { ref.Stop(); p.end(t) })
	return ref, heard
}

func idle(s *host.System) *actor.PID {
	return s.Actors.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
}

func identity(t *testing.T, from ask.Recipient) host.Identity {
	t.Helper()
	who, is := host.IdentityOf(from)
	if !is {
		t.Fatalf("%v is no actor", from)
	}
	return who
}

func TestWatch(t *testing.T) {
	s := brief(t)
	ref, heard := observer(t, s)
	hosted := func(name string) (*host.Ref, *probe) {
		p := newProbe(nil)
		return s.Start(name, func(*host.Ref) host.Actor { return p }), p
	}
	one, p := hosted("one")
	pid := idle(s)
	for _, c := range []struct {
		from ask.Recipient
		stop func()
	}{
		{one, func() { one.Stop(); p.end(t) }},
		{host.Sender{System: s.Actors, PID: pid}, func() { s.Actors.Root.Stop(pid) }},
	} {
		who := identity(t, c.from)
		if err := ref.Watch(who); err != nil {
			t.Fatal(err)
		}
		c.stop()
		if msg := heard.next(t); msg != any(host.Terminated{Actor: who}) {
			t.Errorf("heard %v", msg)
		}
		if err := ref.Watch(who); err != nil { // it has ended before
			t.Fatal(err)
		}
		if msg := heard.next(t); msg != any(host.Terminated{Actor: who}) {
			t.Errorf("heard %v of the second watch", msg)
		}
	}
	other, p2 := hosted("other")
	otherPID := idle(s)
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
	if msg := heard.next(t); msg != "last" {
		t.Errorf("heard %v although the watch was ended", msg)
	}
}

// An actor hears of an end behind all that was sent before the end.
func TestTerminatedOvertakesNothing(t *testing.T) {
	s := brief(t)
	heard := make(inbox, 1000)
	begin := make(chan struct{})
	p := newProbe(func(_ ask.Recipient, msg any) {
		if msg == "wait" {
			<-begin
		}
		heard.Tell(msg)
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
	heard.next(t)
	for i := range n {
		if msg := heard.next(t); msg != i {
			t.Fatalf("heard %v, want %d", msg, i)
		}
	}
	if _, ended := heard.next(t).(host.Terminated); !ended {
		t.Error("the end is not heard last")
	}
	ref.Stop()
	p.end(t)
}

func TestIsFuture(t *testing.T) {
	s := brief(t)
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
		actorPID: false,
		idle(s):  false,
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
	s := brief(t)
	ref, heard := observer(t, s)
	alias, err := ref.Alias("tag")
	if err != nil {
		t.Fatal(err)
	}
	gone := actor.NewFuture(s.Actors, time.Nanosecond)
	if gone.Wait() == nil {
		t.Fatal("the future has not timed out")
	}
	s.Actors.Root.RequestWithCustomSender(gone.PID(), "answer", alias)
	if msg := heard.next(t); msg != any(host.Undelivered{Tag: "tag"}) {
		t.Errorf("heard %v", msg)
	}
	s.Actors.Root.Send(alias, "hello")
	if msg := heard.next(t); msg != "hello" {
		t.Errorf("heard %v", msg)
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

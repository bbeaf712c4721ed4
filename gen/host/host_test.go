package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

func TestSpawn(t *testing.T) {
	s := newSystem(t)
	var self *host.Ref
	p := newProbe(nil)
	ref, err := s.Spawn("a", func(r *host.Ref) host.Actor { self = r; return p })
	if err != nil || self != ref || ref.PID() == nil || ref.PID().Id != "a" {
		t.Fatalf("%v, %v", ref, err)
	}
	if _, err := s.Spawn("a", func(*host.Ref) host.Actor { return newProbe(nil) }); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a second actor of that name: %v", err)
	}
	ref.Stop()
	p.end(t)
}

func TestOrderOfOneSender(t *testing.T) {
	s := newSystem(t)
	const n = 10_000
	next, done := 0, make(chan struct{})
	p := newProbe(func(_ ask.Recipient, msg any) {
		if msg != next {
			t.Errorf("got %v, want %d", msg, next)
		}
		if next++; next == n {
			close(done)
		}
	})
	ref := spawn(t, s, "a", p)
	for i := range n {
		ref.Tell(i)
	}
	<-done
	ref.Stop()
	p.end(t)
}

// No message is lost while senders send to a stopping actor. Refuse handles the messages that
// arrive after Stopped.
func TestStopLosesNothing(t *testing.T) {
	s := newSystem(t)
	for round := range 20 {
		p := newProbe(nil)
		over := make(chan struct{})
		p.receive = func(ask.Recipient, any) {
			select {
			case <-over:
				t.Error("received after Stopped")
			default:
			}
		}
		p.refuse = func(from ask.Recipient, _ any) {
			if from != nil {
				from.Tell("refused")
			}
		}
		ref := spawn(t, s, fmt.Sprint("a", round), p)
		const senders, each = 8, 500
		var wg sync.WaitGroup
		answers := make(inbox, senders*each)
		half := make(chan struct{}, senders)
		for range senders {
			wg.Go(func() {
				for i := range each {
					if i == each/2 {
						half <- struct{}{}
					}
					if i%2 == 0 {
						ask.Send(ref, i, answers)
					} else {
						ref.Tell(i)
					}
				}
			})
		}
		<-half
		ref.Stop()
		if failure := p.end(t); failure != nil {
			t.Fatalf("stopped because of %v", failure)
		}
		close(over)
		wg.Wait()
		total := func() int64 { return p.received.Load() + p.refused.Load() }
		for start := time.Now(); total() < senders*each; runtime.Gosched() {
			if time.Since(start) > timeLimit {
				t.Fatalf("%d of %d messages: %d received, %d refused", total(), senders*each, p.received.Load(), p.refused.Load())
			}
		}
		if total() != senders*each || len(p.stopped) != 0 {
			t.Fatalf("%d messages of %d; stopped again: %v", total(), senders*each, len(p.stopped) != 0)
		}
	}
}

func TestPanic(t *testing.T) {
	var log logs
	s := host.NewSystem(nil, log.logger())
	defer s.Close()
	p := newProbe(func(_ ask.Recipient, msg any) {
		if msg == "bad" {
			panic("on purpose")
		}
	})
	p.refuse = func(from ask.Recipient, msg any) { from.Tell(fmt.Sprint("refused ", msg)) }
	ref := spawn(t, s, "a", p)
	answers := make(inbox, 10)
	ask.Send(ref, "good", answers)
	ask.Send(ref, "bad", answers)
	ask.Send(ref, "behind", answers)
	if failure := p.end(t); failure != "on purpose" {
		t.Errorf("stopped because of %v", failure)
	}
	if got := answers.next(t); got != "refused behind" {
		t.Errorf("%v", got)
	}
	ask.Send(ref, "late", answers)
	if got := answers.next(t); got != "refused late" {
		t.Errorf("%v", got)
	}
	if p.received.Load() != 2 || len(p.stopped) != 0 {
		t.Errorf("%d received, stopped again: %v", p.received.Load(), len(p.stopped) != 0)
	}
	for _, want := range []string{"on purpose", "string", "host_test.go"} {
		if !log.has(want) {
			t.Errorf("the log does not have %q", want)
		}
	}
	ref.Stop() // the actor has stopped already
}

// Answers go to a sender with a PID through protoactor, and to any other sender directly.
func TestSenders(t *testing.T) {
	s := newSystem(t)
	froms := make(chan ask.Recipient, 4)
	p := newProbe(func(from ask.Recipient, msg any) {
		froms <- from
		if from != nil {
			from.Tell(fmt.Sprint("answer to ", msg))
		}
	})
	p.refuse = func(from ask.Recipient, msg any) {
		if from != nil {
			from.Tell(fmt.Sprint("refusal of ", msg))
		}
	}
	ref := spawn(t, s, "a", p)

	ref.Tell("unsigned")
	if from := <-froms; from != nil {
		t.Errorf("from %v", from)
	}
	answers := make(inbox, 2)
	ask.Send(ref, "code's", answers)
	if got := answers.next(t); got != "answer to code's" {
		t.Errorf("%v", got)
	}
	<-froms

	type received struct {
		msg    any
		sender *actor.PID
	}
	messages := make(chan received, 4)
	client := s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if text, ok := c.Message().(string); ok {
			messages <- received{text, c.Sender()}
		}
	}))
	s.Actors.Root.RequestWithCustomSender(ref.PID(), "actor's", client)
	if got := <-messages; got.msg != "answer to actor's" || !got.sender.Equal(ref.PID()) {
		t.Errorf("%v", got)
	}
	if from, ok := (<-froms).(host.Sender); !ok || !from.PID.Equal(client) || !from.Self.Equal(ref.PID()) {
		t.Errorf("from %v", from)
	}
	ref.Stop()
	p.end(t)
	ref.Tell("unsigned")
	ask.Send(ref, "code's", answers)
	if got := answers.next(t); got != "refusal of code's" {
		t.Errorf("%v", got)
	}
	s.Actors.Root.Stop(client)
}

// The messages of protoactor senders that are in the mailbox when the actor stops are
// refused.
func TestRefusesActors(t *testing.T) {
	s := newSystem(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	p := newProbe(func(_ ask.Recipient, msg any) {
		if msg == "block" {
			close(entered)
			<-leave
		}
	})
	p.refuse = func(from ask.Recipient, msg any) {
		if from != nil {
			from.Tell(fmt.Sprint("refusal of ", msg))
		}
	}
	ref := spawn(t, s, "a", p)
	received := make(chan string, 1)
	client := s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if text, ok := c.Message().(string); ok {
			received <- text
		}
	}))
	ref.Tell("block")
	<-entered
	ref.Stop()
	s.Actors.Root.RequestWithCustomSender(ref.PID(), "actor's", client)
	close(leave)
	select {
	case got := <-received:
		if got != "refusal of actor's" {
			t.Error(got)
		}
	case <-time.After(timeLimit):
		t.Fatal("not answered")
	}
	p.end(t)
	s.Actors.Root.Stop(client)
}

// protoactor can watch a hosted actor, and stop it by a poison pill behind earlier messages.
func TestWatchedAndPoisoned(t *testing.T) {
	s := newSystem(t)
	p := newProbe(nil)
	ref := s.Start("a", func(*host.Ref) host.Actor { return p })
	if ref.PID() != nil {
		t.Errorf("%v before Register", ref.PID())
	}
	if err := errors.Join(ref.Register(), ref.Register()); err != nil {
		t.Fatal(err)
	}
	pid := ref.PID()
	received, watching := make(chan string, 2), make(chan struct{}, 2)
	watch := func() *actor.PID {
		return s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *actor.Started:
				c.Watch(pid)
				watching <- struct{}{}
			case *actor.Terminated:
				received <- msg.Who.Id
			}
		}))
	}
	first := watch()
	<-watching
	ref.Tell("before")
	s.Actors.Root.Poison(pid)
	if got := <-received; got != "a" || p.end(t) != nil || p.received.Load() != 1 {
		t.Errorf("end of %q, after %d messages", got, p.received.Load())
	}
	if _, there := s.Actors.ProcessRegistry.GetLocal("a"); there {
		t.Error("it is still registered")
	}
	s.Actors.Root.Stop(first)
}

// Messages are served also after Close, and no goroutine is left.
func TestSystemClose(t *testing.T) {
	for range 50 {
		s := host.NewSystem(nil, nil)
		p := newProbe(func(from ask.Recipient, _ any) { from.Tell("here") })
		ref := spawn(t, s, "a", p)
		answers := make(inbox, 100)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					ask.Send(ref, "hello", answers)
				}
			})
		}
		s.Close()
		s.Close()
		wg.Wait()
		ask.Send(ref, "late", answers)
		for range 41 {
			answers.next(t)
		}
	}
}

// Close leaves the protoactor system of the caller running.
func TestBorrowedSystem(t *testing.T) {
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	s := host.NewSystem(actors, nil)
	p := newProbe(nil)
	ref := spawn(t, s, "a", p)
	ref.Stop()
	p.end(t)
	s.Close()
	if actors.IsStopped() {
		t.Error("Close has shut down a system that it does not own")
	}
	actors.Shutdown()
}

// Each of many busy actors is served by one goroutine at a time.
func TestOneAtATime(t *testing.T) {
	s := newSystem(t)
	const n, each = 50, 200
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	var left sync.WaitGroup
	left.Add(n * each)
	probes := make([]*probe, n)
	for i := range probes {
		count := 0 // unsynchronised on purpose
		p := newProbe(nil)
		p.receive = func(ask.Recipient, any) { count++; left.Done() }
		probes[i] = p
		ref := spawn(t, s, fmt.Sprint("a", i), p)
		go func() {
			for range each {
				ref.Tell("x")
			}
			left.Wait()
			ref.Stop()
		}()
	}
	for _, p := range probes {
		select {
		case <-p.stopped:
		case <-ctx.Done():
			t.Fatal("an actor is not served")
		}
	}
}

// An actor may receive a message, as of a timer, while it is being made.
func TestTellWhileBeingMade(t *testing.T) {
	s := newSystem(t)
	got := make(inbox, 1)
	p := newProbe(func(_ ask.Recipient, msg any) { got <- msg })
	var failure any
	ref, err := s.Spawn("a", func(self *host.Ref) host.Actor {
		defer func() { failure = recover() }()
		self.Tell("early")
		return p
	})
	if failure != nil || err != nil {
		t.Fatalf("Tell fails: %v, %v", failure, err)
	}
	if msg := got.next(t); msg != "early" {
		t.Error(msg)
	}
	ref.Stop()
	p.end(t)
}

// The name of an actor may be one that is made when it is needed.
func TestStartNamed(t *testing.T) {
	s, p := newSystem(t), newProbe(nil)
	ref := s.StartNamed(madeName{}, func(*host.Ref) host.Actor { return p })
	if err := ref.Register(); err != nil || ref.PID().GetId() != "made" {
		t.Errorf("%v: %v", ref.PID(), err)
	}
	ref.Stop()
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

type madeName struct{}

func (madeName) Name() string { return "made" }

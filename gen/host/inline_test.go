package host_test

import (
	"sync"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// An idle actor has handled the message when RunInlineIfIdle returns.
func TestRunInlineIfIdle(t *testing.T) {
	s := newSystem(t)
	p := newProbe(func(from ask.Recipient, msg any) { from.Tell(msg) })
	ref := spawn(t, s, "a", p)
	answers := make(inbox, 1)
	for i := range 100 {
		ref.RunInlineIfIdle(&ask.Call{Message: i, From: answers})
		if len(answers) != 1 || <-answers != i {
			t.Fatalf("message %d is not handled", i)
		}
	}
	ref.Stop()
	p.end(t)
	p.refuse = func(from ask.Recipient, msg any) { from.Tell("refused") }
	ref.RunInlineIfIdle(&ask.Call{Message: 0, From: answers})
	if got := answers.next(t); got != "refused" {
		t.Errorf("%v after the end", got)
	}
}

// envelope is a message that implements ask.Envelope.
type envelope struct{ from inbox }

func (e *envelope) Unwrap() (ask.Recipient, any) { return e.from, "message" }

// An envelope arrives as the message and sender that Unwrap returns: by Tell, by
// RunInlineIfIdle, and after the actor has stopped.
func TestEnvelope(t *testing.T) {
	s := newSystem(t)
	answer := func(from ask.Recipient, msg any) { from.Tell(msg) }
	p := newProbe(answer)
	p.refuse = answer
	ref := spawn(t, s, "a", p)
	e := &envelope{make(inbox, 1)}
	arrives := func() {
		t.Helper()
		for _, send := range []func(any){ref.Tell, ref.RunInlineIfIdle} {
			send(e)
			if got := e.from.next(t); got != "message" {
				t.Errorf("%v arrives", got)
			}
		}
	}
	arrives()
	ref.Stop()
	p.end(t)
	arrives()
}

// RunInlineIfIdle leaves the message to an actor that is still being made.
func TestRunInlineWhileBeingMade(t *testing.T) {
	s := newSystem(t)
	received := make(inbox, 2)
	p := newProbe(func(_ ask.Recipient, msg any) { received.Tell(msg) })
	ref, err := s.Spawn("a", func(self *host.Ref) host.Actor {
		self.RunInlineIfIdle("first")
		self.Tell("second")
		if len(received) > 0 {
			t.Error("an actor has handled a message before it was made")
		}
		return p
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		if got := received.next(t); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	ref.Stop()
	p.end(t)
}

// RunInlineIfIdle does not wait for a busy actor, also when the actor calls it itself, and
// handles one message only. All messages are handled, in order.
func TestRunInlineOfBusyActor(t *testing.T) {
	s := newSystem(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	received := make(inbox, 10)
	p := newProbe(nil)
	ref := spawn(t, s, "a", p)
	p.receive = func(_ ask.Recipient, msg any) {
		switch msg {
		case "block":
			close(entered)
			<-leave
		case "first":
			ref.RunInlineIfIdle("second")
			ref.Tell("third")
		}
		received.Tell(msg)
	}
	ref.Tell("block")
	<-entered
	ref.RunInlineIfIdle("first") // returns before the message is handled
	close(leave)
	for _, want := range []string{"block", "first", "second", "third"} {
		if got := received.next(t); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	ref.Stop()
	p.end(t)
}

// Messages that an actor sends to itself during RunInlineIfIdle are handled afterwards.
func TestRunInlineLeavesTheRest(t *testing.T) {
	s := newSystem(t)
	received := make(inbox, 10)
	p := newProbe(nil)
	ref := spawn(t, s, "a", p)
	p.receive = func(_ ask.Recipient, msg any) {
		if msg == "first" {
			ref.Tell("second")
			ref.RunInlineIfIdle("third")
		}
		received.Tell(msg)
	}
	ref.RunInlineIfIdle("first")
	for _, want := range []string{"first", "second", "third"} {
		if got := received.next(t); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	ref.Stop()
	p.end(t)
}

// A panic during RunInlineIfIdle stops the actor, and does not reach the caller.
func TestRunInlinePanics(t *testing.T) {
	s := newSystem(t)
	p := newProbe(func(ask.Recipient, any) { panic("on purpose") })
	ref := spawn(t, s, "a", p)
	ref.RunInlineIfIdle("bad")
	if failure := p.end(t); failure != "on purpose" {
		t.Errorf("stopped because of %v", failure)
	}
}

// All messages of many concurrent calls of RunInlineIfIdle and Tell are handled, one at a
// time, and those of each sender in order.
func TestRunInlineAmongOthers(t *testing.T) {
	s := newSystem(t)
	type message struct{ sender, n int }
	const senders, each = 8, 2000
	var left sync.WaitGroup
	left.Add(senders * each)
	next := make([]int, senders) // unsynchronised, for the race detector
	p := newProbe(func(_ ask.Recipient, msg any) {
		m := msg.(message)
		if m.n != next[m.sender] {
			t.Errorf("sender %d: got %d, want %d", m.sender, m.n, next[m.sender])
		}
		next[m.sender] = m.n + 1
		left.Done()
	})
	ref := spawn(t, s, "a", p)
	for sender := range senders {
		go func() {
			for n := range each {
				if (n+sender)%3 == 0 {
					ref.Tell(message{sender, n})
				} else {
					ref.RunInlineIfIdle(message{sender, n})
				}
			}
		}()
	}
	left.Wait()
	ref.Stop()
	p.end(t)
}

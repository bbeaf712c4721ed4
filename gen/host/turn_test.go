package host

import (
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
)

// funcActor is an actor with the behaviour of a function.
type funcActor func(msg any)

func (s funcActor) Receive(_ ask.Recipient, msg any)   { s(msg) }
func (funcActor) Stopped(any)                          {}
func (s funcActor) Refuse(from ask.Recipient, msg any) { s(msg) }

// newSingleGoroutine returns a System with one goroutine for all mailboxes, so that the order of
// the turns is known.
func newSingleGoroutine(t *testing.T) *System {
	s := NewSystem(nil, nil)
	s.dispatcher.close()
	s.dispatcher = newDispatcher(1)
	t.Cleanup(s.Close)
	return s
}

func (s *System) startFunc(f funcActor) *Ref {
	return s.Start("func", func(*Ref) Actor { return f })
}

// An actor beside actors that are never idle is served after at most one turn of each of
// them.
func TestQuietActorBesideBusyOnes(t *testing.T) {
	const busy, rounds, limit = 3, 10, 100 * 3 * throughput
	s := newSingleGoroutine(t)
	var waited []int        // only the one goroutine uses these variables
	var handled, before int // messages that the busy actors handled: in all, and before the last message to the quiet actor
	pending, over := false, make(chan struct{})
	quiet := s.startFunc(func(any) {
		waited = append(waited, handled-before)
		pending = false
	})
	for i := range busy {
		var self *Ref
		self = s.startFunc(func(any) {
			if handled++; handled == limit {
				close(over)
			}
			if i == 0 && !pending && len(waited) < rounds {
				pending, before = true, handled
				quiet.Tell("question")
			}
			if handled < limit {
				self.Tell("go on")
			}
		})
		self.Tell("begin")
	}
	<-over
	s.dispatcher.close() // only the test uses the variables from here on
	s.dispatcher = newDispatcher(1)
	if len(waited) != rounds {
		t.Errorf("the quiet actor was served %d times, want %d", len(waited), rounds)
	}
	for round, n := range waited {
		if n > busy*throughput {
			t.Errorf("round %d: busy actors handled %d messages before the quiet one handled its own, at most %d are accepted",
				round, n, busy*throughput)
		}
	}
}

// RunInlineIfIdle leaves the messages that follow to the run queue, where the actor is behind
// those that had messages before.
func TestRunInlineKeepsTheOrderOfTurns(t *testing.T) {
	s := newSingleGoroutine(t)
	handled, over := 0, make(chan int, 1)
	quiet := s.startFunc(func(any) { over <- handled })
	entered, leave := make(chan struct{}), make(chan struct{})
	s.startFunc(func(any) { close(entered); <-leave }).Tell("block the goroutine")
	<-entered
	var busy *Ref
	busy = s.startFunc(func(msg any) {
		handled++
		if msg == "first" {
			quiet.Tell("question")
			for range 3 * throughput {
				busy.Tell("next")
				busy.RunInlineIfIdle("next") // the actor itself is not idle now
			}
		}
	})
	busy.RunInlineIfIdle("first")
	close(leave)
	if n := <-over; n != 1 {
		t.Errorf("%d messages were handled before the quiet actor's, want 1", n)
	}
}

// An actor of SpawnPriority is served while other actors block all other goroutines.
func TestPriority(t *testing.T) {
	s := newSingleGoroutine(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	s.startFunc(func(any) { close(entered); <-leave }).Tell("block the goroutine")
	<-entered
	received := make(chan any, 1)
	ref, err := s.SpawnPriority("first", func(*Ref) Actor { return funcActor(func(msg any) { received <- msg }) })
	if err != nil {
		t.Fatal(err)
	}
	ref.Tell("hello")
	<-received
	close(leave)
	ref.Stop()
}

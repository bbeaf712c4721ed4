package host

import (
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
)

// script is an actor whose behaviour the test gives.
type script func(msg any)

func (s script) Receive(_ ask.Recipient, msg any)   { s(msg) }
func (script) Stopped(any)                          {}
func (s script) Refuse(from ask.Recipient, msg any) { s(msg) }

// newNarrow makes a System whose pool has one goroutine, so that the order of the turns is
// known.
func newNarrow(t *testing.T) *System {
	s := NewSystem(nil, nil)
	s.dispatcher.close()
	s.dispatcher = newDispatcher(1)
	t.Cleanup(s.Close)
	return s
}

func (s *System) script(f script) *Ref {
	return s.Start("scripted", func(*Ref) Actor { return f })
}

// An actor that is told something beside actors that are never idle is served when each of
// them has had one turn.
func TestQuietActorBesideBusyOnes(t *testing.T) {
	const busy, rounds, limit = 3, 10, 100 * 3 * turn
	s := newNarrow(t)
	var waited []int       // these belong to the one goroutine of the pool
	var handled, asked int // messages of busy actors: in all, and when the quiet one was told
	pending, over := false, make(chan struct{})
	quiet := s.script(func(any) {
		waited = append(waited, handled-asked)
		pending = false
	})
	for i := range busy {
		var self *Ref
		self = s.script(func(any) {
			if handled++; handled == limit {
				close(over)
			}
			if i == 0 && !pending && len(waited) < rounds {
				pending, asked = true, handled
				quiet.Tell("are you there?")
			}
			if handled < limit {
				self.Tell("go on")
			}
		})
		self.Tell("begin")
	}
	<-over
	s.dispatcher.close() // the actors are the test's now
	s.dispatcher = newDispatcher(1)
	if len(waited) != rounds {
		t.Errorf("the quiet actor was served %d times, want %d", len(waited), rounds)
	}
	for round, n := range waited {
		if n > busy*turn {
			t.Errorf("round %d: busy actors handled %d messages before the quiet one handled its own, at most %d are accepted",
				round, n, busy*turn)
		}
	}
}

// A message that is handed to an idle actor leaves what comes with it to the run queue: there
// the actor stands behind those that were told something before.
func TestRunInlineKeepsTheOrderOfTurns(t *testing.T) {
	s := newNarrow(t)
	handled, over := 0, make(chan int, 1)
	quiet := s.script(func(any) { over <- handled })
	entered, leave := make(chan struct{}), make(chan struct{})
	s.script(func(any) { close(entered); <-leave }).Tell("keep the goroutine of the pool")
	<-entered
	var busy *Ref
	busy = s.script(func(msg any) {
		handled++
		if msg == "first" {
			quiet.Tell("are you there?")
			for range 3 * turn {
				busy.Tell("next")
				busy.RunInlineIfIdle("next") // by itself, which is not idle
			}
		}
	})
	busy.RunInlineIfIdle("first")
	close(leave)
	if n := <-over; n != 1 {
		t.Errorf("%d messages were handled before the quiet actor's, want 1", n)
	}
}

// An actor of SpawnPriority is served while each goroutine of the pool is kept by another.
func TestPriority(t *testing.T) {
	s := newNarrow(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	s.script(func(any) { close(entered); <-leave }).Tell("keep the goroutine of the pool")
	<-entered
	heard := make(chan any, 1)
	ref, err := s.SpawnPriority("first", func(*Ref) Actor { return script(func(msg any) { heard <- msg }) })
	if err != nil {
		t.Fatal(err)
	}
	ref.Tell("hello")
	<-heard
	close(leave)
	ref.Stop()
}

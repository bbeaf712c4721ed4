package host_test

import (
	"sync"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// start starts an actor without a name.
func start(s *host.System, receive func(from ask.Recipient, msg any)) *host.Ref {
	return s.Start("", func(*host.Ref) host.Actor { return newProbe(receive) })
}

func benchSystem(b *testing.B) *host.System {
	s := host.NewSystem(nil, nil)
	b.Cleanup(s.Close)
	b.ReportAllocs()
	return s
}

// One sender that waits for each answer.
func BenchmarkTellAndAnswer(b *testing.B) {
	answers := make(inbox, 1)
	ref := start(benchSystem(b), func(_ ask.Recipient, msg any) { answers <- msg })
	for b.Loop() {
		ref.Tell("x")
		<-answers
	}
}

// One sender that runs each message inline.
func BenchmarkRunInlineIfIdle(b *testing.B) {
	ref := start(benchSystem(b), func(ask.Recipient, any) {})
	for b.Loop() {
		ref.RunInlineIfIdle("x")
	}
}

// Actors that are never idle: each message leads to the next.
func BenchmarkBusy(b *testing.B) {
	for name, actors := range map[string]int{"1": 1, "16": 16} {
		b.Run(name, func(b *testing.B) {
			s := benchSystem(b)
			var left sync.WaitGroup
			for i := range actors {
				left.Add(1)
				n := (b.N + i) / actors
				var self *host.Ref
				self = start(s, func(_ ask.Recipient, msg any) {
					if n--; n >= 0 {
						self.Tell(msg)
						return
					}
					left.Done()
				})
				self.Tell("x")
			}
			left.Wait()
		})
	}
}

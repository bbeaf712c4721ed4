package lockqueue

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The cost of a hand-off within the process: a release, and a new request at the end of the queue.
// It must not grow with the queue.
func BenchmarkHandOff(b *testing.B) {
	defer func(f func(error)) { invariants.Violated = f }(invariants.Violated)
	invariants.Violated = nil
	for _, waiting := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			s := newState(queue.Mutex(), Incarnation{1})
			Step(s, Session{Epoch: 1, State: Connected})
			next, holder := requests.ID(0), requests.ID(1)
			acquire := func() {
				next++
				serial := Step(s, Acquire{ID: next})[0].Serial
				created := Created{Serial: serial, Node: fmt.Sprintf("%s%010d", s.incarnation.prefix(serial, "-lock-"), next-1), Token: requests.Token{Czxid: int64(next) + 1}, DirectoryCzxid: 1}
				if next == 1 {
					created.Children = []string{created.Node}
				}
				Step(s, created)
			}
			for range waiting {
				acquire()
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range Step(s, Release{ID: holder}) {
					if f.Kind == requests.DeleteNode {
						Step(s, Deleted{Serial: f.Serial})
						break
					}
				}
				holder++
				acquire()
			}
			if n := len(s.waitingInOrder()); n != waiting-1 {
				b.Fatalf("%d wait, want %d", n, waiting-1)
			}
		})
	}
}

// The cost of a list that shows many contenders of other processes.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newState(queue.Mutex(), Incarnation{1})
			children := make([]string, n)
			for i := range children {
				children[i] = fmt.Sprintf("%s%010d", Incarnation{2}.prefix(uint64(i), "-lock-"), i)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.clock++
				s.merge(children, s.clock)
			}
		})
	}
}

package queue

import (
	"fmt"
	"testing"
)

// The cost of the rule alone, for the last contender in a queue.
func BenchmarkHolds(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			kinds, rule := make([]Kind, n), Mutex()
			b.ReportAllocs()
			for b.Loop() {
				rule.Holds(kinds, Exclusive)
			}
		})
	}
}

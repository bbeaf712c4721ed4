package queue

import (
	"fmt"
	"testing"
)

// The cost of the positions of readers, which all hold.
func BenchmarkPositions(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			children, rule := make([]Child, n), ReadWrite()
			for i := range children {
				children[i].Name = fmt.Sprintf("_c_00000000-0000-0000-0000-%012d-__READ__%010d", i, i)
			}
			b.ReportAllocs()
			for b.Loop() {
				rule.Positions(children)
			}
		})
	}
}

package requests

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A List has the elements of a slice that the same is done to.
func TestLine(t *testing.T) {
	type element struct {
		n     int
		place Element[element]
	}
	rapid.Check(t, func(t *rapid.T) {
		var l List[element]
		var want []*element
		remove := func(e *element) {
			i := slices.Index(want, e)
			if left := e.place.Leave(); left != (i >= 0) {
				t.Fatalf("%d has left: %v", e.n, left)
			}
			if i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
		}
		all := make([]element, 5)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "element")
			e := &all[i]
			e.n = i
			switch where := rapid.SampledFrom([]string{"behind", "out", "loop"}).Draw(t, "where"); {
			case where == "loop": // which takes some out
				for e := range l.All() {
					if rapid.Bool().Draw(t, "leaves") {
						remove(e)
					}
				}
			case where == "out" || slices.Contains(want, e):
				remove(e)
			default:
				l.Append(e, &e.place)
				want = append(want, e)
			}
			if got := slices.Collect(l.All()); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
			if first := l.First(); len(want) == 0 && first != nil || len(want) > 0 && first != want[0] {
				t.Fatalf("the first is %v, want the first of %v", first, want)
			}
		}
	})
}

package partition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// No member leads more than its capacity, the order of the ids does not matter, and a member that comes
// moves its own share and little more.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1024).Draw(t, "partitions")
		ids := rapid.SliceOfNDistinct(rapid.Uint64(), 1, 12, rapid.ID).Draw(t, "ids")
		before, after := Places(ids[1:], n), Places(ids, n)
		load, moved := make([]int, len(ids)), 0
		for p := range n {
			load[after[p].Best]++
			if after[p].Best == after[p].Second || (len(ids) > 1) != (after[p].Second >= 0) {
				t.Fatalf("partition %d: %+v", p, after[p])
			}
			if len(ids) > 1 && ids[after[p].Best] != ids[1:][before[p].Best] {
				moved++
			}
		}
		if most := slices.Max(load); most > Capacity(len(ids), n) {
			t.Fatalf("%d of %d partitions for one of %d members", most, n, len(ids))
		}
		if n >= 512 && len(ids) > 1 && moved > n/len(ids)+n*6/100 {
			t.Fatalf("%d of %d partitions move to the %d. member", moved, n, len(ids))
		}
		turned := slices.Clone(ids)
		slices.Reverse(turned)
		for p, at := range Places(turned, n) {
			if turned[at.Best] != ids[after[p].Best] {
				t.Fatalf("partition %d: the order of the ids matters", p)
			}
		}
	})
}

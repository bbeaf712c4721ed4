package reply

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type request struct{ To }

// Two Opens, of which a request may be in one, do what two lists would do. A request that was in the
// first may be looked for, and removed, in the second: a caller that stops waiting asks the present
// epoch.
func TestOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var opens [2]Open
		var want [2][]Request
		var all []*request
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "open")
			if len(all) == 0 || rapid.Bool().Draw(t, "add") {
				r := new(request)
				opens[i].Add(r)
				all, want[i] = append(all, r), append(want[i], r)
			} else {
				r := rapid.SampledFrom(all).Draw(t, "request")
				opens[i].Remove(r)
				want[i] = slices.DeleteFunc(want[i], func(o Request) bool { return o == r })
			}
			for i := range opens {
				if got := opens[i].InOrder(); !slices.Equal(got, want[i]) || opens[i].Len() != len(want[i]) {
					t.Fatalf("%d has %d requests %v, want %v", i, opens[i].Len(), got, want[i])
				}
				for _, r := range all {
					if opens[i].Has(r) != slices.Contains(want[i], Request(r)) {
						t.Fatalf("%d has %p: %v", i, r, opens[i].Has(r))
					}
				}
			}
		}
	})
}

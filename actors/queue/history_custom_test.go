package queue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// ways is a rule of independent kinds: each excludes its own only.
func ways() Rule {
	return Rule{Permits: 1, Private: true, BlockedBy: []KindSet{Kinds(0), Kinds(1)}, Markers: []string{"-a-", "-b-"}}
}

// intention is the rule of the locks of that name, on a whole and its parts: IS, IX, S, X.
func intention() Rule {
	const is, ix, s, x = 0, 1, 2, 3
	return Rule{
		Permits: 1, Private: true,
		BlockedBy: []KindSet{is: Kinds(x), ix: Kinds(s, x), s: Kinds(ix, x), x: Kinds(is, ix, s, x)},
		Markers:   []string{"-is-", "-ix-", "-s-", "-x-"},
		Reenter:   []KindSet{is: Kinds(is, ix, s, x), ix: Kinds(ix, x), s: Kinds(s, x), x: Kinds(x)},
	}
}

func TestHistoriesOfIndependentKinds(t *testing.T) { testHistories(t, ways()) }

func TestHistoriesOfIntentionLocks(t *testing.T) { testHistories(t, intention()) }

// drawRule makes up a rule that Check accepts.
func drawRule(t *rapid.T) Rule {
	kinds := rapid.IntRange(2, 4).Draw(t, "kinds")
	r := Rule{Permits: rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "permits"), Private: true}
	sets := rapid.Uint64Range(0, 1<<kinds-1)
	var names []string
	for k := range kinds {
		names = append(names, fmt.Sprint("kind ", k))
		r.Markers = append(r.Markers, fmt.Sprintf("-k%d-", k))
		r.BlockedBy = append(r.BlockedBy, KindSet(sets.Draw(t, "blocked by")))
	}
	if rapid.Bool().Draw(t, "re-entry") {
		for k := range kinds {
			may := KindSet(sets.Draw(t, "re-enters"))
			r.Reenter = append(r.Reenter, 0)
			for held := range kinds {
				if accepted := r; may.Has(Kind(held)) {
					accepted.Reenter = make([]KindSet, kinds)
					if accepted.Reenter[k] = Kinds(Kind(held)); accepted.Check(names) == nil {
						r.Reenter[k] |= Kinds(Kind(held))
					}
				}
			}
		}
	}
	if err := r.Check(names); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHistoriesOfAnyRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawRule(t), rapid.IntRange(1, 3).Draw(t, "processes"))
		repeat(t, w.actions())
		w.finish()
	})
}

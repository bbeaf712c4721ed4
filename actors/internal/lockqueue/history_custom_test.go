package lockqueue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/queue"
)

// ways is a rule of independent kinds: each excludes its own only.
func ways() queue.Rule {
	return queue.Rule{Permits: 1, OwnMarkersOnly: true, BlockedBy: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}, Markers: []string{"-a-", "-b-"}}
}

// intention is the rule of the locks of that name, on a whole and its parts: IS, IX, S, X.
func intention() queue.Rule {
	const is, ix, s, x = 0, 1, 2, 3
	return queue.Rule{
		Permits: 1, OwnMarkersOnly: true,
		BlockedBy: []queue.KindSet{is: queue.Kinds(x), ix: queue.Kinds(s, x), s: queue.Kinds(ix, x), x: queue.Kinds(is, ix, s, x)},
		Markers:   []string{"-is-", "-ix-", "-s-", "-x-"},
		Reenter:   []queue.KindSet{is: queue.Kinds(is, ix, s, x), ix: queue.Kinds(ix, x), s: queue.Kinds(s, x), x: queue.Kinds(x)},
	}
}

func TestHistoriesOfIndependentKinds(t *testing.T) { testHistories(t, ways()) }

func TestHistoriesOfIntentionLocks(t *testing.T) { testHistories(t, intention()) }

// drawRule makes up a rule that Check accepts.
func drawRule(t *rapid.T) queue.Rule {
	kinds := rapid.IntRange(2, 4).Draw(t, "kinds")
	r := queue.Rule{Permits: rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "permits"), OwnMarkersOnly: true}
	sets := rapid.Uint64Range(0, 1<<kinds-1)
	var names []string
	for k := range kinds {
		names = append(names, fmt.Sprint("kind ", k))
		r.Markers = append(r.Markers, fmt.Sprintf("-k%d-", k))
		r.BlockedBy = append(r.BlockedBy, queue.KindSet(sets.Draw(t, "blocked by")))
	}
	if rapid.Bool().Draw(t, "re-entry") {
		for k := range kinds {
			may := queue.KindSet(sets.Draw(t, "re-enters"))
			r.Reenter = append(r.Reenter, 0)
			for held := range kinds {
				if accepted := r; may.Has(queue.Kind(held)) {
					accepted.Reenter = make([]queue.KindSet, kinds)
					if accepted.Reenter[k] = queue.Kinds(queue.Kind(held)); accepted.Check(names) == nil {
						r.Reenter[k] |= queue.Kinds(queue.Kind(held))
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
		machinetest.Repeat(t, w.actions())
		w.finish()
	})
}

package lockqueue

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/queue"
)

// drawRule returns a random rule that Check accepts.
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
			drawn := queue.KindSet(sets.Draw(t, "re-enters"))
			r.Reenter = append(r.Reenter, 0)
			for held := range kinds {
				if alone := r; drawn.Has(queue.Kind(held)) {
					alone.Reenter = make([]queue.KindSet, kinds)
					if alone.Reenter[k] = queue.Kinds(queue.Kind(held)); alone.Check(names) == nil {
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
		m := newModel(t, drawRule(t), rapid.IntRange(1, 3).Draw(t, "processes"))
		machinetest.Repeat(t, m.actions())
		m.finish()
	})
}

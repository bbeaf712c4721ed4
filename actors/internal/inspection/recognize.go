package inspection

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// form is a recipe as it was recognized. The zero value is no recipe: there are no contenders.
type form struct {
	name           string          // "mutex", "read-write", "semaphore", "leader latch" or "custom"
	kazooSemaphore bool            // kazoo's semaphore, not Curator's
	recipe         *manager.Recipe // for the rule and the kinds; nil without a name
	custom         bool            // the rule is not known, and so not which contenders hold
	below          bool            // a semaphore's, whose contenders are in the directories below
}

// mayContend reports whether a child of the name may be a contender by some recipe.
func mayContend(name string) bool {
	return queue.IsContender(name) || queue.IsKazooLease(name)
}

// recognize returns the recipe by the children of a lock's directory, and those that may be
// contenders. A semaphore's directory has none: its contenders are in the directories below.
func recognize(children []zkbridge.Child) (form, []zkbridge.Child) {
	var nodes []zkbridge.Child
	markers := map[string]bool{}
	for _, c := range children {
		marker, ok := queue.Marker(c.Name)
		// A node without a sequence number may be anything; a contender's is ephemeral, or it may
		// not be read.
		if !ok && queue.IsKazooLease(c.Name) && (c.Stat.EphemeralOwner != 0 || c.Stat.Czxid == 0) {
			marker, ok = kazooLease, true
		}
		if ok {
			nodes = append(nodes, c)
			markers[marker] = true
		}
	}
	return formOf(markers), nodes
}

// formOf returns the recipe by the markers of its contenders.
func formOf(has map[string]bool) form {
	delete(has, "") // of names that have none
	switch {
	case has[queue.ReadMarker] || has[queue.WriteMarker] || has[queue.KazooReadMarker]:
		return form{name: "read-write", recipe: recipes.ReadWrite}
	case has[queue.LeaseMarker]:
		return form{name: semaphore, recipe: leases}
	case has[queue.LockMarker] || has[queue.KazooMarker] || has[queue.RecipesMarker]:
		return form{name: mutex, recipe: recipes.Mutex}
	case has[queue.LatchMarker]:
		return form{name: recipes.LeaderLatch.Name, recipe: recipes.LeaderLatch}
	case has[kazooLease]:
		return form{name: semaphore, kazooSemaphore: true, recipe: leases}
	case len(has) > 0:
		return customForm(has)
	}
	return form{}
}

const (
	mutex      = "mutex"
	semaphore  = "semaphore"
	kazooLease = "kazoo's lease" // in place of a marker
)

// leases are those of a semaphore whose permits are not known.
var leases = &manager.Recipe{Rule: queue.Leases(0), Kinds: []string{"permit"}}

// customForm has a kind for each marker.
func customForm(markers map[string]bool) form {
	rule := queue.Rule{Permits: 1, Markers: slices.Collect(maps.Keys(markers)), BlockedBy: make([]queue.KindSet, len(markers))}
	slices.SortFunc(rule.Markers, func(a, b string) int { // a longer marker may end as a shorter one does
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var kinds []string
	for _, marker := range rule.Markers {
		kinds = append(kinds, strings.Trim(marker, "-"))
	}
	return form{name: "custom", custom: true, recipe: recipes.Custom("custom", rule, kinds)}
}

// positions returns the contenders in the order of the queue. Of a custom lock none holds: the rule
// is not known.
func (f form) positions(children []queue.Child) []queue.Position {
	if f.kazooSemaphore {
		return f.byCzxid(children)
	}
	all := f.recipe.Rule.Positions(children)
	for i := range all {
		all[i].Holds = all[i].Holds && !f.custom
	}
	return all
}

// byCzxid is positions for kazoo's leases.
func (f form) byCzxid(children []queue.Child) (all []queue.Position) {
	children = slices.DeleteFunc(children, func(c queue.Child) bool { return !mayContend(c.Name) })
	slices.SortFunc(children, func(a, b queue.Child) int {
		return cmp.Or(cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(a.Name, b.Name))
	})
	ahead := f.recipe.Rule.NewCensus()
	for i, c := range children {
		all = append(all, queue.Position{Child: c, Kind: queue.Exclusive, Ahead: i, Holds: f.recipe.Rule.Holds(ahead, queue.Exclusive)})
		ahead[queue.Exclusive]++
	}
	return all
}

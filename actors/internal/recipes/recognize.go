package recipes

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/queue"
)

// How a reader without a handle finds the recipe of a lock: by the names in its directory.

// Form is a recipe as it was recognized. The zero value is no recipe: there are no contenders.
type Form struct {
	// Name is "mutex", "read-write", "semaphore", "leader latch" or "custom". KazooSemaphore
	// distinguishes kazoo's semaphore from Curator's.
	Name           string
	KazooSemaphore bool

	recipe *manager.Recipe // for the rule and the kinds; nil without a Name
	custom bool            // the rule is not known, and so not which contenders hold
}

// MayContend reports whether a child of the name may be a contender by some recipe.
func MayContend(name string) bool {
	return queue.IsContender(name) || queue.IsKazooLease(name)
}

// Recognize returns the recipe by the names in a lock's directory. A semaphore's directory has
// none: its contenders are in the directories below.
func Recognize(names []string) Form {
	has := map[string]bool{}
	for _, name := range names {
		marker, ok := queue.Marker(name)
		if !ok && queue.IsKazooLease(name) {
			marker = kazooLease
		}
		has[marker] = true
	}
	delete(has, "")
	switch {
	case has[queue.ReadMarker] || has[queue.WriteMarker] || has[queue.KazooReadMarker]:
		return Form{Name: "read-write", recipe: ReadWrite}
	case has[queue.LeaseMarker]:
		return Form{Name: leasesForm, recipe: leasesOf(0)}
	case has[queue.LockMarker] || has[queue.KazooMarker] || has[queue.RecipesMarker]:
		return Form{Name: "mutex", recipe: Mutex}
	case has[queue.LatchMarker]:
		return Form{Name: LeaderLatch.Name, recipe: LeaderLatch}
	case has[kazooLease]:
		return Form{Name: leasesForm, KazooSemaphore: true, recipe: leasesOf(0)}
	case len(has) > 0:
		return customForm(has)
	}
	return Form{}
}

const (
	leasesForm = "semaphore"
	kazooLease = "kazoo's lease" // in place of a marker
)

// customForm has a kind for each marker.
func customForm(markers map[string]bool) Form {
	rule := queue.Rule{Permits: 1, Markers: slices.Collect(maps.Keys(markers)), BlockedBy: make([]queue.KindSet, len(markers))}
	slices.SortFunc(rule.Markers, func(a, b string) int { // a longer marker may end as a shorter one does
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var kinds []string
	for _, marker := range rule.Markers {
		kinds = append(kinds, strings.Trim(marker, "-"))
	}
	return Form{Name: "custom", custom: true, recipe: Custom("custom", rule, kinds)}
}

// KindName returns the name of a kind.
func (f Form) KindName(k queue.Kind) string {
	return f.recipe.KindName(k)
}

// Positions returns the contenders in the order of the queue. Of a custom lock none holds: the rule
// is not known.
func (f Form) Positions(children []queue.Child) []queue.Position {
	if f.KazooSemaphore {
		return f.byCzxid(children)
	}
	all := f.recipe.Rule.Positions(children)
	for i := range all {
		all[i].Holds = all[i].Holds && !f.custom
	}
	return all
}

// byCzxid is Positions for kazoo's leases.
func (f Form) byCzxid(children []queue.Child) (all []queue.Position) {
	children = slices.DeleteFunc(children, func(c queue.Child) bool { return !MayContend(c.Name) })
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

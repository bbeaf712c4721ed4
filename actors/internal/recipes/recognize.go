package recipes

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
)

// How a reader without a handle finds the recipe of a lock: by the names in its directory.

// Form is a recipe as it was recognized. The zero value is no recipe: there are no contenders.
type Form struct {
	// Name is "mutex", "read-write", "semaphore", "leader latch", "simple mutex", "simple read-write" or
	// "custom". KazooSemaphore distinguishes kazoo's semaphore from Curator's.
	Name           string
	KazooSemaphore bool

	recipe *shell.Recipe // for the rule and the kinds; nil without a Name
	czxids bool          // the contenders have no sequence numbers: their czxids order them
	custom bool          // the rule is not known, and so not which contenders hold
}

// simpleOwner matches the owner nodes of the simple forms, kazooLease the leases of kazoo.
var (
	simpleOwner = regexp.MustCompile("^(" + simpleLockNode + "|" + simpleWriterNode + "|R)-[0-9a-f]{16}-[0-9]+$")
	kazooLease  = regexp.MustCompile("^[0-9a-f]{32}$")
)

// MayContend reports whether a child of the name may be a contender by some recipe.
func MayContend(name string) bool {
	return queue.IsContender(name) || otherMarker(name) != ""
}

// IsUnique reports whether no other contender of one directory ever has the name, and MayContend is true.
func IsUnique(name string) bool { return MayContend(name) && otherMarker(name) != name }

// Recognize returns the recipe by the names in a lock's directory. A semaphore's directory has none:
// its contenders are in the directories below.
func Recognize(names []string) Form {
	has := map[string]bool{}
	for _, name := range names {
		marker, ok := queue.Marker(name)
		if !ok {
			marker = otherMarker(name)
		}
		has[marker] = true
	}
	delete(has, "")
	switch {
	case has["__READ__"] || has["__WRIT__"] || has["__rlock__"]:
		return Form{Name: "read-write", recipe: ReadWrite}
	case has["-lease-"]:
		return Form{Name: leasesForm, recipe: leasesOf(0)}
	case has["-lock-"] || has["__lock__"] || has["x-"]:
		return Form{Name: "mutex", recipe: Mutex}
	case has[latchMarker]:
		return Form{Name: LeaderLatch.Name, recipe: LeaderLatch}
	case has[simpleWriterNode] || has[simpleReaderPrefix]:
		return Form{Name: "simple read-write", recipe: SimpleReadWrite, czxids: true}
	case has[simpleLockNode]:
		return Form{Name: SimpleMutex.Name, recipe: SimpleMutex, czxids: true}
	case has[kazooMarker]:
		return Form{Name: leasesForm, KazooSemaphore: true, recipe: leasesOf(0), czxids: true}
	case len(has) > 0:
		return customForm(has)
	}
	return Form{}
}

const (
	leasesForm  = "semaphore"
	latchMarker = "-latch-" // of Curator's LeaderLatch
	kazooMarker = "kazoo's lease"
)

// otherMarker is queue.Marker for names without a sequence number.
func otherMarker(name string) string {
	switch {
	case kazooLease.MatchString(name):
		return kazooMarker
	case name == simpleLockNode, name == simpleWriterNode:
		return name
	case !simpleOwner.MatchString(name):
		return ""
	case strings.HasPrefix(name, simpleReaderPrefix):
		return simpleReaderPrefix
	}
	return name[:strings.IndexByte(name, '-')]
}

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

// Positions returns the contenders in the order of the queue. Of a custom lock none holds: the rule is
// not known.
func (f Form) Positions(children []queue.Child) []queue.Position {
	if f.czxids {
		return f.byCzxid(children)
	}
	all := f.recipe.Rule.Positions(children)
	for i := range all {
		all[i].Holds = all[i].Holds && !f.custom
	}
	return all
}

// byCzxid is Positions for contenders without sequence numbers. The lock node of a simple form was
// created together with the holder's owner node, which stands for both.
func (f Form) byCzxid(children []queue.Child) (all []queue.Position) {
	owners := map[int64]bool{}
	for _, c := range children {
		owners[c.Czxid] = owners[c.Czxid] || simpleOwner.MatchString(c.Name)
	}
	slices.SortFunc(children, func(a, b queue.Child) int {
		return cmp.Or(cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(a.Name, b.Name))
	})
	ahead := f.recipe.Rule.NewCensus()
	for _, c := range children {
		lockNode := c.Name == simpleLockNode || c.Name == simpleWriterNode
		if !MayContend(c.Name) || lockNode && owners[c.Czxid] {
			continue
		}
		kind := queue.Exclusive
		if strings.HasPrefix(c.Name, simpleReaderPrefix) {
			kind = queue.Shared
		}
		all = append(all, queue.Position{Child: c, Kind: kind, Ahead: len(all), Holds: f.recipe.Rule.Holds(ahead, kind)})
		ahead[kind]++
	}
	return all
}

package manager

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Recipe is what makes the actor of one path the lock that it is. It does not change once a
// handle has it.
type Recipe struct {
	// Name is "mutex", and whatever else distinguishes the recipe from others with its rule.
	Name string
	Rule queue.Rule
	// Kinds are the names of the kinds, by queue.Kind.
	Kinds []string
	// KindNumbers are the numbers of the kinds in an Acquire, by queue.Kind. They are nil for a
	// recipe with one kind, EXCLUSIVE.
	KindNumbers []messages.Kind
	// MaxPermits is how many permits one request may ask for; 0 if the lock has no permits.
	MaxPermits uint32
	// Members are those of a multi-lock; nil for other recipes.
	Members []Member
	// Directories are those of a lock whose contenders are not in the directory at its path; nil
	// for other locks. No other lock can be at their paths.
	Directories []Directory
	// NewActor makes the actor of an entry.
	NewActor func(*Entry) host.Actor
	// OwnsParent reports that the directory above the lock's directory is of the same lock, and is
	// made by the lock's first node.
	OwnsParent bool
	// RequireDirectory reports that the directory at the lock's path must exist: nothing makes it.
	RequireDirectory bool

	// Delay is the lock-delay of a mutex; 0 for none.
	Delay time.Duration
	// LocalQueue is not nil if the owners of this process share a node.
	LocalQueue *LocalQueueConfig
	// Permits is how many permits a semaphore has; 0 for other recipes. CountPath is the node
	// that says how many, and Permits only the first value of a missing node; "" if Permits is
	// fixed.
	Permits   int
	CountPath string
}

// LocalQueueConfig is the budget of a local queue, by the time at which the node hold ends.
type LocalQueueConfig struct {
	// Grants and Time bound a node hold while other processes wait.
	Grants int
	Time   time.Duration
	// Linger bounds a node hold that is not in use.
	Linger time.Duration
}

// Member is a lock of a multi-lock, and the kind that it is wanted for.
type Member struct {
	Path   string
	Recipe *Recipe
	Kind   queue.Kind
}

// Directory is one of several directories of a lock, at the lock's path and Suffix, such as
// "/leases".
type Directory struct {
	Suffix string
	Recipe *Recipe
}

// same reports whether two handles mean the same kind of lock.
func (r *Recipe) same(as *Recipe) bool {
	return r == as || r.Name == as.Name && r.MaxPermits == as.MaxPermits &&
		slices.Equal(r.Kinds, as.Kinds) && reflect.DeepEqual(r.Rule, as.Rule) &&
		slices.EqualFunc(r.Members, as.Members, func(a, b Member) bool { return a.Path == b.Path && a.Kind == b.Kind && a.Recipe.same(b.Recipe) })
}

// IsIn reports whether the lock at the path has contenders in the directory.
func (r *Recipe) IsIn(path, directory string) bool {
	in := func(d Directory) bool { return path+d.Suffix == directory }
	of := func(m Member) bool { return m.Recipe.IsIn(m.Path, directory) }
	return path == directory || slices.ContainsFunc(r.Directories, in) || slices.ContainsFunc(r.Members, of)
}

// String returns the name of the recipe.
func (r *Recipe) String() string { return r.Name }

// Family returns the name of the recipe without its options, the number of its permits and its
// paths.
func (r *Recipe) Family() string {
	switch {
	case r.Members != nil:
		return "multi-lock"
	case r.MaxPermits > 0:
		return "semaphore"
	case r.Rule.OwnMarkersOnly:
		return "custom"
	case len(r.Kinds) > 1:
		return "read-write"
	}
	return "mutex"
}

// KindName returns the name of a kind. A kind of other libraries that the recipe does not know
// has the name of the first kind.
func (r *Recipe) KindName(k queue.Kind) string {
	if int(k) < len(r.Kinds) {
		return r.Kinds[k]
	}
	return r.Kinds[0]
}

// NumberOf returns the number of a kind in an Acquire.
func (r *Recipe) NumberOf(k queue.Kind) uint32 {
	if r.KindNumbers == nil {
		return uint32(messages.Kind_EXCLUSIVE)
	}
	return uint32(r.KindNumbers[k])
}

// KindOf returns the kind by its number in an Acquire. The error names the numbers that the
// recipe has. The number 0 never stands for one of several kinds: a sender that does not know
// of kinds has sent it.
func (r *Recipe) KindOf(number uint32) (queue.Kind, error) {
	if r.KindNumbers == nil {
		if number != uint32(messages.Kind_EXCLUSIVE) {
			return 0, fmt.Errorf("kind %d: a %s has one kind, %d", number, r.Name, messages.Kind_EXCLUSIVE)
		}
		return 0, nil
	}
	if i := slices.Index(r.KindNumbers, messages.Kind(number)); i >= 0 {
		return queue.Kind(i), nil
	}
	var all []string
	for i, number := range r.KindNumbers {
		all = append(all, fmt.Sprintf("%d (%s)", number, r.Kinds[i]))
	}
	slices.Sort(all)
	return 0, fmt.Errorf("kind %d: a %s has the kinds %s", number, r.Name, strings.Join(all, ", "))
}

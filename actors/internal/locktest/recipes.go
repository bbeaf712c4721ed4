package locktest

import (
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Recipe is a recipe in one of its kinds.
type Recipe struct {
	Name string
	// At returns the handle at a path.
	At func(locks *actors.Locks, path string) Handle
	// Options are the options of each request.
	Options []actors.Option
	// Kind and Permits are the fields of an Acquire message that requests the same as the handle.
	Kind    messages.Kind
	Permits uint32
	// Directories are the ends of the paths of the directories. It is nil where the path is the
	// only directory.
	Directories []string
	// Members returns the members of a multi-lock.
	Members func(locks *actors.Locks, path string) []actors.Member
	// shared: several owners may hold.
	shared bool
	// NotReentrant: an owner cannot enter again what it holds.
	NotReentrant bool
	// ForgetsLoss: an owner with a lost grant is not refused.
	ForgetsLoss bool
}

var mineRule = queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}

// ThreeMembers returns locks of different kinds at paths of their own.
func ThreeMembers(l *actors.Locks, path string) []actors.Member {
	return []actors.Member{l.Mutex(path + "-a"), l.RWMutex(path + "-b").Write(), l.RWMutex(path + "-c").Read()}
}

// mutexAndSemaphore returns the members of a multi-lock with a semaphore.
func mutexAndSemaphore(l *actors.Locks, path string) []actors.Member {
	return []actors.Member{l.Mutex(path + "-a"), l.Semaphore(path+"-s", 1)}
}

// Recipes are all recipes, in each of their kinds.
var Recipes = []Recipe{
	{Name: "mutex", At: func(l *actors.Locks, path string) Handle { return l.Mutex(path) }},
	{Name: "lock-delay", At: func(l *actors.Locks, path string) Handle { return l.Mutex(path, actors.LockDelay(time.Second)) }},
	{Name: "local queue", At: func(l *actors.Locks, path string) Handle { return l.Mutex(path, ShortLinger) }},
	{Name: "read", Kind: messages.Kind_READ, shared: true,
		At: func(l *actors.Locks, path string) Handle { return l.RWMutex(path).Read() }},
	{Name: "write", Kind: messages.Kind_WRITE,
		At: func(l *actors.Locks, path string) Handle { return l.RWMutex(path).Write() }},
	{Name: "local read", Kind: messages.Kind_READ, shared: true,
		At: func(l *actors.Locks, path string) Handle { return l.RWMutex(path, ShortLinger).Read() }},
	{Name: "local write", Kind: messages.Kind_WRITE,
		At: func(l *actors.Locks, path string) Handle { return l.RWMutex(path, ShortLinger).Write() }},
	{Name: "custom", NotReentrant: true,
		At: func(l *actors.Locks, path string) Handle {
			return l.Custom(path, "custom lock", mineRule, "mine").Kind("mine")
		}},
	{Name: "semaphore", Directories: []string{"/locks", "/leases"}, NotReentrant: true, ForgetsLoss: true,
		At: func(l *actors.Locks, path string) Handle { return l.Semaphore(path, 1) }},
	{Name: "semaphore, two of three", Directories: []string{"/locks", "/leases"}, NotReentrant: true, ForgetsLoss: true,
		Options: []actors.Option{actors.Permits(2)}, Permits: 2,
		At: func(l *actors.Locks, path string) Handle { return l.Semaphore(path, 3) }},
	{Name: "semaphore mutex", Directories: []string{"/locks", "/leases"}, NotReentrant: true, ForgetsLoss: true,
		At: func(l *actors.Locks, path string) Handle { return l.SemaphoreMutex(path) }},
	{Name: "multi-lock", Directories: []string{"-a", "-b", "-c"}, Members: ThreeMembers,
		At: func(l *actors.Locks, path string) Handle { return l.MultiLock(ThreeMembers(l, path)...) }},
	{Name: "multi-lock with a semaphore", Directories: []string{"-a", "-s/locks", "-s/leases"}, NotReentrant: true, Members: mutexAndSemaphore,
		At: func(l *actors.Locks, path string) Handle { return l.MultiLock(mutexAndSemaphore(l, path)...) }},
}

// Named returns the recipes with these names.
func Named(names ...string) (some []Recipe) {
	for _, name := range names {
		some = append(some, Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == name })])
	}
	return some
}

// Exclusive returns the recipes whose handle excludes all others, without options.
func Exclusive() []Recipe {
	return slices.DeleteFunc(slices.Clone(Recipes), func(r Recipe) bool { return r.shared || r.Options != nil })
}

// EachRecipe runs f in virtual time for each exclusive recipe.
func EachRecipe(t *testing.T, f func(v *Virtual, locks *actors.Locks, r Recipe)) {
	t.Helper()
	for _, r := range Exclusive() {
		t.Run(r.Name, func(t *testing.T) {
			if r.Name == "custom" {
				NeedsZooKeeper(t, "a rule of the program's own")
			}
			Bubble(t, func(v *Virtual) { f(v, v.Locks(), r) })
		})
	}
}

// HandleOf returns the handle of a recipe at a path of its own.
func (b *Fixture) HandleOf(locks *actors.Locks, r Recipe) Handle {
	return r.At(locks, b.LockPath+"-"+r.Name)
}

// WaitNoNode waits until no path of HandleOf has a node.
func (b *Fixture) WaitNoNode() {
	b.Helper()
	for _, r := range Recipes {
		var nodes []string
		zktest.Eventually(b, b.limit(), func() bool { nodes = b.NodesOf(r, b.LockPath+"-"+r.Name); return len(nodes) == 0 },
			"no node is left: %v", &nodes)
	}
}

// DirectoryEnds returns the ends of the paths of the recipe's directories.
func (r Recipe) DirectoryEnds() []string {
	if r.Directories == nil {
		return []string{""}
	}
	return r.Directories
}

// NodesOf returns the paths of a recipe's contenders and leases at a path.
func (b *Fixture) NodesOf(r Recipe, path string) (nodes []string) {
	b.Helper()
	for _, directory := range r.DirectoryEnds() {
		for _, name := range b.Nodes(b, path+directory) {
			nodes = append(nodes, path+directory+"/"+name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// recipe is a recipe in one of its kinds.
type recipe struct {
	name string
	// at returns the handle at a path.
	at func(locks *actors.Locks, path string) handle
	// options are the options of each request.
	options []actors.Option
	// kind and permits are the fields of an Acquire message that requests the same as the handle.
	kind    messages.Kind
	permits uint32
	// directories are the ends of the paths of the directories. It is nil where the path is the
	// only directory.
	directories []string
	// shared: several owners may hold.
	shared bool
	// notReentrant: an owner cannot enter again what it holds.
	notReentrant bool
	// forgetsLoss: an owner with a lost grant is not refused.
	forgetsLoss bool
}

var mineRule = queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}

// recipes are all recipes, in each of their kinds.
var recipes = []recipe{
	{name: "mutex", at: func(l *actors.Locks, path string) handle { return l.Mutex(path) }},
	{name: "lock-delay", at: func(l *actors.Locks, path string) handle { return l.Mutex(path, actors.LockDelay(time.Second)) }},
	{name: "local queue", at: func(l *actors.Locks, path string) handle { return l.Mutex(path, shortLinger) }},
	{name: "read", kind: messages.Kind_READ, shared: true,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path).Read() }},
	{name: "write", kind: messages.Kind_WRITE,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path).Write() }},
	{name: "local read", kind: messages.Kind_READ, shared: true,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path, shortLinger).Read() }},
	{name: "local write", kind: messages.Kind_WRITE,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path, shortLinger).Write() }},
	{name: "custom", notReentrant: true,
		at: func(l *actors.Locks, path string) handle {
			return l.Custom(path, "custom lock", mineRule, "mine").Kind("mine")
		}},
	{name: "semaphore", directories: []string{"/locks", "/leases"}, notReentrant: true, forgetsLoss: true,
		at: func(l *actors.Locks, path string) handle { return l.Semaphore(path, 1) }},
	{name: "semaphore, two of three", directories: []string{"/locks", "/leases"}, notReentrant: true, forgetsLoss: true,
		options: []actors.Option{actors.Permits(2)}, permits: 2,
		at: func(l *actors.Locks, path string) handle { return l.Semaphore(path, 3) }},
	{name: "semaphore mutex", directories: []string{"/locks", "/leases"}, notReentrant: true, forgetsLoss: true,
		at: func(l *actors.Locks, path string) handle { return l.SemaphoreMutex(path) }},
	{name: "multi-lock", directories: []string{"-a", "-b", "-c"},
		at: func(l *actors.Locks, path string) handle {
			return l.MultiLock(l.Mutex(path+"-a"), l.RWMutex(path+"-b").Write(), l.RWMutex(path+"-c").Read())
		}},
	{name: "multi-lock with a semaphore", directories: []string{"-a", "-s/locks", "-s/leases"}, notReentrant: true,
		at: func(l *actors.Locks, path string) handle {
			return l.MultiLock(l.Mutex(path+"-a"), l.Semaphore(path+"-s", 1))
		}},
}

// named returns the recipes with these names.
func named(names ...string) (some []recipe) {
	for _, name := range names {
		some = append(some, recipes[slices.IndexFunc(recipes, func(r recipe) bool { return r.name == name })])
	}
	return some
}

// exclusive returns the recipes whose handle excludes all others, without options.
func exclusive() []recipe {
	return slices.DeleteFunc(slices.Clone(recipes), func(r recipe) bool { return r.shared || r.options != nil })
}

// eachRecipe runs f in virtual time for each exclusive recipe.
func eachRecipe(t *testing.T, f func(v *virtual, locks *actors.Locks, r recipe)) {
	t.Helper()
	for _, r := range exclusive() {
		t.Run(r.name, func(t *testing.T) {
			bubble(t, func(v *virtual) { f(v, v.locks(), r) })
		})
	}
}

// handle returns the handle of a recipe at a path of its own.
func (b *testLock) handle(locks *actors.Locks, r recipe) handle {
	return r.at(locks, b.path+"-"+r.name)
}

// waitNoNode waits until no path of handle has a node.
func (b *testLock) waitNoNode() {
	b.Helper()
	for _, r := range recipes {
		var nodes []string
		zktest.Eventually(b, b.limit(), func() bool { nodes = b.nodesOf(r, b.path+"-"+r.name); return len(nodes) == 0 },
			"no node is left: %v", &nodes)
	}
}

// directoryEnds returns the ends of the paths of the recipe's directories.
func (r recipe) directoryEnds() []string {
	if r.directories == nil {
		return []string{""}
	}
	return r.directories
}

// nodesOf returns the paths of a recipe's contenders and leases at a path.
func (b *testLock) nodesOf(r recipe, path string) (nodes []string) {
	b.Helper()
	for _, directory := range r.directoryEnds() {
		for _, name := range b.Nodes(b, path+directory) {
			nodes = append(nodes, path+directory+"/"+name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

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

// recipe is one way to hold a lock.
type recipe struct {
	name string
	// at returns the handle of the lock at a path.
	at func(locks *actors.Locks, path string) handle
	// options are those of each request.
	options []actors.Option
	// kind and permits are those of a message that asks for what the handle does.
	kind    messages.Kind
	permits uint32
	// directories are those of the nodes, relative to the path. It is nil where the path is the only one.
	directories []string
	// shared: several owners may hold.
	shared bool
	// once: an owner cannot enter again what it holds.
	once bool
	// forgets: an owner is not refused for what it has lost.
	forgets bool
}

var mineRule = queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}

// recipes are all recipes, in each of their kinds.
var recipes = []recipe{
	{name: "mutex", at: func(l *actors.Locks, path string) handle { return l.Mutex(path) }},
	{name: "lock-delay", at: func(l *actors.Locks, path string) handle { return l.Mutex(path, actors.LockDelay(time.Second)) }},
	{name: "local queue", at: func(l *actors.Locks, path string) handle { return l.Mutex(path, brief) }},
	{name: "read", kind: messages.Kind_READ, shared: true,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path).Read() }},
	{name: "write", kind: messages.Kind_WRITE,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path).Write() }},
	{name: "local read", kind: messages.Kind_READ, shared: true,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path, brief).Read() }},
	{name: "local write", kind: messages.Kind_WRITE,
		at: func(l *actors.Locks, path string) handle { return l.RWMutex(path, brief).Write() }},
	{name: "custom", once: true,
		at: func(l *actors.Locks, path string) handle {
			return l.Custom(path, "custom lock", mineRule, "mine").Kind("mine")
		}},
	{name: "semaphore", directories: []string{"/locks", "/leases"}, once: true, forgets: true,
		at: func(l *actors.Locks, path string) handle { return l.Semaphore(path, 1) }},
	{name: "semaphore, two of three", directories: []string{"/locks", "/leases"}, once: true, forgets: true,
		options: []actors.Option{actors.Permits(2)}, permits: 2,
		at: func(l *actors.Locks, path string) handle { return l.Semaphore(path, 3) }},
	{name: "semaphore mutex", directories: []string{"/locks", "/leases"}, once: true, forgets: true,
		at: func(l *actors.Locks, path string) handle { return l.SemaphoreMutex(path) }},
	{name: "multi-lock", directories: []string{"-a", "-b", "-c"},
		at: func(l *actors.Locks, path string) handle {
			return l.MultiLock(l.Mutex(path+"-a"), l.RWMutex(path+"-b").Write(), l.RWMutex(path+"-c").Read())
		}},
	{name: "multi-lock with a semaphore", directories: []string{"-a", "-s/locks", "-s/leases"}, once: true,
		at: func(l *actors.Locks, path string) handle {
			return l.MultiLock(l.Mutex(path+"-a"), l.Semaphore(path+"-s", 1))
		}},
	{name: "simple mutex", at: func(l *actors.Locks, path string) handle { return l.SimpleMutex(path) }},
	{name: "simple read", kind: messages.Kind_READ, shared: true,
		at: func(l *actors.Locks, path string) handle { return l.SimpleRWMutex(path).Read() }},
	{name: "simple write", kind: messages.Kind_WRITE,
		at: func(l *actors.Locks, path string) handle { return l.SimpleRWMutex(path).Write() }},
}

// named returns some recipes.
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

// eachRecipe runs f in a bubble for each exclusive recipe.
func eachRecipe(t *testing.T, f func(v *virtual, locks *actors.Locks, r recipe)) {
	t.Helper()
	for _, r := range exclusive() {
		t.Run(r.name, func(t *testing.T) {
			bubble(t, func(v *virtual) { f(v, v.locks(), r) })
		})
	}
}

// handle returns the handle of a recipe at a path that no other recipe of the test has.
func (b *testLock) handle(locks *actors.Locks, r recipe) handle {
	return r.at(locks, b.path+"-"+r.name)
}

// waitNone waits until no lock of handle has a node.
func (b *testLock) waitNone() {
	b.Helper()
	for _, r := range recipes {
		var nodes []string
		zktest.Eventually(b, b.limit(), func() bool { nodes = b.nodesOf(r, b.path+"-"+r.name); return len(nodes) == 0 },
			"no node is left: %v", &nodes)
	}
}

// places returns the ends of the paths of the recipe's directories.
func (r recipe) places() []string {
	if r.directories == nil {
		return []string{""}
	}
	return r.directories
}

// nodesOf returns the paths of a recipe's contenders and leases at a path.
func (b *testLock) nodesOf(r recipe, path string) (nodes []string) {
	b.Helper()
	for _, directory := range r.places() {
		for _, name := range b.Nodes(b, path+directory) {
			nodes = append(nodes, path+directory+"/"+name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// tableRow is a recipe of TestEndings: what one owner holds, and what waits for it.
type tableRow struct {
	name string
	// holder and waiter return the handles of what is held, and of what waits for that.
	holder, waiter func(locks *actors.Locks, path string) locker
	// options are those of each request.
	options []actors.Option
	// hold acquires all that the owner holds, where that is not one grant of the holder.
	hold func(t testing.TB, c *cell) []*actors.Grant
	// ends lists sets of nodes. The deletion of one of these sets ends all grants. It is nil
	// where there is one set, the grants' own nodes.
	ends func(c *cell) [][]string
	// directories are those of the nodes, relative to the path.
	directories []string
	// poison has a message at which the actor panics, and then one for each that it builds on.
	poison []any
	// unqueued: a request that waits has no node.
	unqueued bool
	// localQueue: a request has no node that waits in the process of the holder.
	localQueue bool
	// once: the requests of one owner are apart, and none is refused for what the owner has lost.
	once bool
	// kind and permits are those of a message that asks for what holder does.
	kind    messages.Kind
	permits uint32
}

// Messages at which actors panic, which expect no answer without contents.
var (
	noCreated    = (*messages.Created)(nil)
	noTransacted = (*messages.Transacted)(nil)
	noGranted    = (*messages.Granted)(nil)
	noContended  = (*messages.Contended)(nil)
)

const asMe = actors.Owner("me")

// ofBoth returns the handle for a recipe whose holders and waiters have the same one.
func ofBoth(r tableRow, handle func(locks *actors.Locks, path string) locker) tableRow {
	r.holder, r.waiter = handle, handle
	return r
}

// reads and writes return the handles of a read-write lock's two modes.
func reads(options ...actors.LockOption) func(*actors.Locks, string) locker {
	return func(l *actors.Locks, path string) locker { return l.RWMutex(path, options...).Read() }
}

func writes(options ...actors.LockOption) func(*actors.Locks, string) locker {
	return func(l *actors.Locks, path string) locker { return l.RWMutex(path, options...).Write() }
}

// writeAndRead holds a read-write lock to write and to read.
func writeAndRead(options ...actors.LockOption) func(testing.TB, *cell) []*actors.Grant {
	return func(t testing.TB, c *cell) []*actors.Grant {
		rw := c.ours.RWMutex(c.path, options...)
		return []*actors.Grant{lock(t, rw.Write(), actors.WithOwner(asMe)), lock(t, rw.Read(), actors.WithOwner(asMe))}
	}
}

// anyNode has the deletion of any one node of the grants end them all.
func anyNode(c *cell) (ends [][]string) {
	for _, g := range c.grants {
		for _, node := range g.Nodes() {
			ends = append(ends, []string{node})
		}
	}
	return ends
}

// anyNodeBefore has the deletion of any one node that there is while the owner holds end all.
func anyNodeBefore(c *cell) (ends [][]string) {
	for _, node := range c.before {
		ends = append(ends, []string{node})
	}
	return ends
}

var mineRule = queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}

var tableRows = []tableRow{
	ofBoth(tableRow{name: "mutex", poison: []any{noCreated}},
		func(l *actors.Locks, path string) locker { return l.Mutex(path) }),
	ofBoth(tableRow{name: "mutex, twice", poison: []any{noCreated}, hold: func(t testing.TB, c *cell) []*actors.Grant {
		mu := c.ours.Mutex(c.path)
		return []*actors.Grant{lock(t, mu, actors.WithOwner(asMe)), lock(t, mu, actors.WithOwner(asMe))}
	}}, func(l *actors.Locks, path string) locker { return l.Mutex(path) }),
	{name: "read", holder: reads(), waiter: writes(), poison: []any{noCreated}, kind: messages.Kind_READ},
	{name: "write", holder: writes(), waiter: reads(), poison: []any{noCreated}, kind: messages.Kind_WRITE},
	{name: "write and read", holder: writes(), waiter: reads(), poison: []any{noCreated}, hold: writeAndRead(), kind: messages.Kind_WRITE},
	ofBoth(tableRow{name: "custom", poison: []any{noCreated}},
		func(l *actors.Locks, path string) locker {
			return l.Custom(path, "custom lock", mineRule, "mine").Kind("mine")
		}),
	ofBoth(tableRow{name: "semaphore", directories: []string{"/locks", "/leases"}, options: []actors.Option{actors.Permits(2)},
		poison: []any{noGranted, noCreated, noCreated}, ends: anyNode, once: true, permits: 2},
		func(l *actors.Locks, path string) locker { return l.Semaphore(path, 3) }),
	ofBoth(tableRow{name: "semaphore mutex", directories: []string{"/locks", "/leases"},
		poison: []any{noGranted, noCreated, noCreated}, once: true},
		func(l *actors.Locks, path string) locker { return l.SemaphoreMutex(path) }),
	ofBoth(tableRow{name: "multi-lock", directories: []string{"-a", "-b", "-c"}, ends: anyNode,
		poison: []any{noGranted, noCreated, noCreated, noCreated}},
		func(l *actors.Locks, path string) locker {
			return l.MultiLock(l.Mutex(path+"-a"), l.RWMutex(path+"-b").Write(), l.RWMutex(path+"-c").Read())
		}),
	ofBoth(tableRow{name: "multi-lock with a semaphore", directories: []string{"-a", "-s/locks", "-s/leases"}, ends: anyNode,
		once: true, poison: []any{noGranted, noCreated, noGranted}},
		func(l *actors.Locks, path string) locker {
			return l.MultiLock(l.Mutex(path+"-a"), l.Semaphore(path+"-s", 1))
		}),
	ofBoth(tableRow{name: "local queue", poison: []any{noContended, noCreated}, localQueue: true},
		func(l *actors.Locks, path string) locker { return l.Mutex(path, brief) }),
	{name: "local read", holder: reads(brief), waiter: writes(brief), poison: []any{noContended, noCreated}, localQueue: true,
		kind: messages.Kind_READ},
	{name: "local write and read", holder: writes(brief), waiter: reads(brief), poison: []any{noContended, noCreated},
		hold: writeAndRead(brief), ends: anyNode, localQueue: true, kind: messages.Kind_WRITE},
	ofBoth(tableRow{name: "lock-delay", poison: []any{noCreated}},
		func(l *actors.Locks, path string) locker { return l.Mutex(path, actors.LockDelay(time.Second)) }),
	ofBoth(tableRow{name: "simple mutex", poison: []any{noContended, noTransacted}, ends: anyNodeBefore, unqueued: true},
		func(l *actors.Locks, path string) locker { return l.SimpleMutex(path) }),
	{name: "simple read", poison: []any{noContended, noTransacted}, unqueued: true, kind: messages.Kind_READ,
		holder: func(l *actors.Locks, path string) locker { return l.SimpleRWMutex(path).Read() },
		waiter: func(l *actors.Locks, path string) locker { return l.SimpleRWMutex(path).Write() }},
	{name: "simple write", poison: []any{noContended, noTransacted}, ends: anyNodeBefore, unqueued: true, kind: messages.Kind_WRITE,
		holder: func(l *actors.Locks, path string) locker { return l.SimpleRWMutex(path).Write() },
		waiter: func(l *actors.Locks, path string) locker { return l.SimpleRWMutex(path).Read() }},
}

// nodes returns the paths of the row's contenders and leases that there are now.
func (c *cell) nodes() (nodes []string) {
	c.Helper()
	directories := c.row.directories
	if directories == nil {
		directories = []string{""}
	}
	for _, directory := range directories {
		for _, name := range c.Nodes(c, c.path+directory) {
			nodes = append(nodes, c.path+directory+"/"+name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

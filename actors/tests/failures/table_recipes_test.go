package failures

import (
	"cmp"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// tableRow is a recipe of TestEndings: the recipe that one owner holds, and the recipe that waits
// for it.
type tableRow struct {
	locktest.Recipe
	// waiter returns the handle of the recipe that waits.
	waiter func(locks *actors.Locks, path string) locktest.Handle
	// hold acquires the grants of the owner. It is nil for one grant of the recipe.
	hold func(t testing.TB, c *cell) []*actors.Grant
	// ends returns sets of nodes: the deletion of any set ends all grants. It is nil for one set,
	// the grants' own nodes.
	ends func(c *cell) [][]string
	// panicMessages has a message at which the actor panics, and then one for each actor that it
	// builds on.
	panicMessages []any
	// localQueue: a request that waits in the holder's process has no node.
	localQueue bool
}

const me = actors.Owner("me")

// row returns the row of a recipe. The name of a second recipe is that of the recipe that waits.
func row(r tableRow, holder string, waiter ...string) tableRow {
	name := r.Name
	r.Recipe = locktest.Named(holder)[0]
	r.Name = cmp.Or(name, holder)
	r.waiter = r.At
	for _, other := range locktest.Named(waiter...) {
		r.waiter = other.At
	}
	return r
}

// writeAndRead holds a read-write lock to write and to read.
func writeAndRead(options ...actors.LockOption) func(testing.TB, *cell) []*actors.Grant {
	return func(t testing.TB, c *cell) []*actors.Grant {
		rw := c.ours.RWMutex(c.LockPath, options...)
		return []*actors.Grant{locktest.Lock(t, rw.Write(), actors.WithOwner(me)), locktest.Lock(t, rw.Read(), actors.WithOwner(me))}
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

var tableRows = []tableRow{
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "mutex"),
	row(tableRow{Recipe: locktest.Recipe{Name: "mutex, twice"}, panicMessages: []any{locktest.NoCreated}, hold: func(t testing.TB, c *cell) []*actors.Grant {
		mu := c.ours.Mutex(c.LockPath)
		return []*actors.Grant{locktest.Lock(t, mu, actors.WithOwner(me)), locktest.Lock(t, mu, actors.WithOwner(me))}
	}}, "mutex"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "read", "write"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "write", "read"),
	row(tableRow{Recipe: locktest.Recipe{Name: "write and read"}, panicMessages: []any{locktest.NoCreated}, hold: writeAndRead()}, "write", "read"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "custom"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}, ends: anyNode}, "semaphore, two of three"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "semaphore mutex"),
	row(tableRow{panicMessages: []any{locktest.NoGranted, locktest.NoCreated, locktest.NoCreated, locktest.NoCreated}, ends: anyNode}, "multi-lock"),
	row(tableRow{panicMessages: []any{locktest.NoGranted, locktest.NoCreated, locktest.NoCreated}, ends: anyNode}, "multi-lock with a semaphore"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}, localQueue: true}, "local queue"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}, localQueue: true}, "local read", "local write"),
	row(tableRow{Recipe: locktest.Recipe{Name: "local write and read"}, panicMessages: []any{locktest.NoCreated}, hold: writeAndRead(locktest.ShortLinger),
		ends: anyNode, localQueue: true}, "local write", "local read"),
	row(tableRow{panicMessages: []any{locktest.NoCreated}}, "lock-delay"),
}

// nodes returns the paths of the row's present contenders and leases.
func (c *cell) nodes() []string { return c.NodesOf(c.row.Recipe, c.LockPath) }

package actors_test

import (
	"cmp"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// tableRow is a recipe of TestEndings: the recipe that one owner holds, and the recipe that waits
// for it.
type tableRow struct {
	recipe
	// waiter returns the handle of the recipe that waits.
	waiter func(locks *actors.Locks, path string) handle
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

// Messages at which actors panic, which expect contents.
var (
	noCreated = (*messages.Created)(nil)
	noGranted = (*messages.Granted)(nil)
)

const me = actors.Owner("me")

// row returns the row of a recipe. The name of a second recipe is that of the recipe that waits.
func row(r tableRow, holder string, waiter ...string) tableRow {
	name := r.name
	r.recipe = named(holder)[0]
	r.name = cmp.Or(name, holder)
	r.waiter = r.at
	for _, other := range named(waiter...) {
		r.waiter = other.at
	}
	return r
}

// writeAndRead holds a read-write lock to write and to read.
func writeAndRead(options ...actors.LockOption) func(testing.TB, *cell) []*actors.Grant {
	return func(t testing.TB, c *cell) []*actors.Grant {
		rw := c.ours.RWMutex(c.path, options...)
		return []*actors.Grant{lock(t, rw.Write(), actors.WithOwner(me)), lock(t, rw.Read(), actors.WithOwner(me))}
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
	row(tableRow{panicMessages: []any{noCreated}}, "mutex"),
	row(tableRow{recipe: recipe{name: "mutex, twice"}, panicMessages: []any{noCreated}, hold: func(t testing.TB, c *cell) []*actors.Grant {
		mu := c.ours.Mutex(c.path)
		return []*actors.Grant{lock(t, mu, actors.WithOwner(me)), lock(t, mu, actors.WithOwner(me))}
	}}, "mutex"),
	row(tableRow{panicMessages: []any{noCreated}}, "read", "write"),
	row(tableRow{panicMessages: []any{noCreated}}, "write", "read"),
	row(tableRow{recipe: recipe{name: "write and read"}, panicMessages: []any{noCreated}, hold: writeAndRead()}, "write", "read"),
	row(tableRow{panicMessages: []any{noCreated}}, "custom"),
	row(tableRow{panicMessages: []any{noCreated}, ends: anyNode}, "semaphore, two of three"),
	row(tableRow{panicMessages: []any{noCreated}}, "semaphore mutex"),
	row(tableRow{panicMessages: []any{noGranted, noCreated, noCreated, noCreated}, ends: anyNode}, "multi-lock"),
	row(tableRow{panicMessages: []any{noGranted, noCreated, noCreated}, ends: anyNode}, "multi-lock with a semaphore"),
	row(tableRow{panicMessages: []any{noCreated}, localQueue: true}, "local queue"),
	row(tableRow{panicMessages: []any{noCreated}, localQueue: true}, "local read", "local write"),
	row(tableRow{recipe: recipe{name: "local write and read"}, panicMessages: []any{noCreated}, hold: writeAndRead(shortLinger),
		ends: anyNode, localQueue: true}, "local write", "local read"),
	row(tableRow{panicMessages: []any{noCreated}}, "lock-delay"),
}

// nodes returns the paths of the row's present contenders and leases.
func (c *cell) nodes() []string { return c.nodesOf(c.row.recipe, c.path) }

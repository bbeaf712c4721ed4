package actors_test

import (
	"cmp"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// tableRow is a recipe of TestEndings: what one owner holds, and what waits for it.
type tableRow struct {
	recipe
	// waiter returns the handle of what waits. It is nil where that is the holder's.
	waiter func(locks *actors.Locks, path string) handle
	// hold acquires all that the owner holds, where that is not one grant of the recipe.
	hold func(t testing.TB, c *cell) []*actors.Grant
	// ends lists sets of nodes. The deletion of one of these sets ends all grants. It is nil
	// where there is one set, the grants' own nodes.
	ends func(c *cell) [][]string
	// poison has a message at which the actor panics, and then one for each that it builds on.
	poison []any
	// unqueued: a request that waits has no node.
	unqueued bool
	// localQueue: a request has no node that waits in the process of the holder.
	localQueue bool
}

// Messages at which actors panic, which expect no answer without contents.
var (
	noCreated    = (*messages.Created)(nil)
	noTransacted = (*messages.Transacted)(nil)
	noGranted    = (*messages.Granted)(nil)
	noContended  = (*messages.Contended)(nil)
)

const asMe = actors.Owner("me")

// row returns the row of a recipe, and of a recipe that waits for it if there is another one.
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

// anyNodeBefore has the deletion of any one node that there is while the owner holds end all.
func anyNodeBefore(c *cell) (ends [][]string) {
	for _, node := range c.before {
		ends = append(ends, []string{node})
	}
	return ends
}

var tableRows = []tableRow{
	row(tableRow{poison: []any{noCreated}}, "mutex"),
	row(tableRow{recipe: recipe{name: "mutex, twice"}, poison: []any{noCreated}, hold: func(t testing.TB, c *cell) []*actors.Grant {
		mu := c.ours.Mutex(c.path)
		return []*actors.Grant{lock(t, mu, actors.WithOwner(me)), lock(t, mu, actors.WithOwner(me))}
	}}, "mutex"),
	row(tableRow{poison: []any{noCreated}}, "read", "write"),
	row(tableRow{poison: []any{noCreated}}, "write", "read"),
	row(tableRow{recipe: recipe{name: "write and read"}, poison: []any{noCreated}, hold: writeAndRead()}, "write", "read"),
	row(tableRow{poison: []any{noCreated}}, "custom"),
	row(tableRow{poison: []any{noGranted, noCreated, noCreated}, ends: anyNode}, "semaphore, two of three"),
	row(tableRow{poison: []any{noGranted, noCreated, noCreated}}, "semaphore mutex"),
	row(tableRow{poison: []any{noGranted, noCreated, noCreated, noCreated}, ends: anyNode}, "multi-lock"),
	row(tableRow{poison: []any{noGranted, noCreated, noGranted}, ends: anyNode}, "multi-lock with a semaphore"),
	row(tableRow{poison: []any{noContended, noCreated}, localQueue: true}, "local queue"),
	row(tableRow{poison: []any{noContended, noCreated}, localQueue: true}, "local read", "local write"),
	row(tableRow{recipe: recipe{name: "local write and read"}, poison: []any{noContended, noCreated}, hold: writeAndRead(shortLinger),
		ends: anyNode, localQueue: true}, "local write", "local read"),
	row(tableRow{poison: []any{noCreated}}, "lock-delay"),
	row(tableRow{poison: []any{noContended, noTransacted}, ends: anyNodeBefore, unqueued: true}, "simple mutex"),
	row(tableRow{poison: []any{noContended, noTransacted}, unqueued: true}, "simple read", "simple write"),
	row(tableRow{poison: []any{noContended, noTransacted}, ends: anyNodeBefore, unqueued: true}, "simple write", "simple read"),
}

// nodes returns the paths of the row's contenders and leases that there are now.
func (c *cell) nodes() []string { return c.nodesOf(c.row.recipe, c.path) }

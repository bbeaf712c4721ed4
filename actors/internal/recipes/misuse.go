package recipes

import (
	"context"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// Two recipes on one path exclude each other only if their rules know each other's names. Within a
// process the manager refuses a second recipe. Across processes only the nodes in the directory
// show it: the lock's actor reports contenders with names that its rule does not know.

// otherRecipe returns the recipe that creates children of the name, if that recipe does not
// exclude recipes whose contenders have other names. It returns "" for a name of no recipe.
func otherRecipe(name string) string {
	switch {
	case name == queue.LeasesSuffix[1:]:
		return "semaphore"
	case queue.IsKazooLease(name):
		return "kazoo's semaphore"
	case queue.IsContender(name):
		return "mutex, a read-write lock or a custom lock"
	}
	return ""
}

// maxSuspects bounds the nodes that reportOthers reads.
const maxSuspects = 10

// reportOthers logs, once for each path, that another recipe uses it, too. names are of the path's
// directory. A name alone proves nothing, because any directory may have it, such as one with locks
// of its own: a goroutine reads the nodes.
func reportOthers(m *manager.Manager, path string, here *manager.Recipe, names []string) {
	suspects := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return otherRecipe(name) == "" })
	if len(suspects) == 0 {
		return
	}
	suspects = suspects[:min(len(suspects), maxSuspects)]
	go func() {
		bridge := m.Bridge.FailFast(false) // it waits for a connection
		children, _, err := bridge.WatchChildren(context.Background(), path, func(name string) bool { return slices.Contains(suspects, name) }, nil)
		if err != nil {
			return
		}
		for _, c := range children {
			if c.Stat.EphemeralOwner != 0 || c.Stat.Czxid != 0 && c.Name == queue.LeasesSuffix[1:] && hasLeases(bridge, path) {
				if m.FirstMisuse(path, "recipes") {
					m.Log.Error("two recipes use one path, and do not exclude each other: give each of them a path of its own",
						"path", path, "here", here.String(), "other", otherRecipe(c.Name), "child", c.Name,
						"do", "change the path in one of the programs")
				}
				return
			}
		}
	}()
}

// hasLeases reports whether a semaphore at the path has leases.
func hasLeases(bridge zkbridge.Internals, path string) bool {
	none := func(string) bool { return false }
	children, _, err := bridge.WatchChildren(context.Background(), path+queue.LeasesSuffix, none, nil)
	return err == nil && slices.ContainsFunc(children, func(c zkbridge.Child) bool {
		marker, _ := queue.Marker(c.Name)
		return marker == queue.LeaseMarker
	})
}

// reportClients logs once for each path that programs use it whose libraries do not wait for each
// other.
func (d *directory) reportClients() {
	if d.actor.Manager.FirstMisuse(d.path, "clients") {
		d.actor.Manager.Log.Error("Curator's clients do not wait for others on this path, because they do not know the form of the others' names",
			"path", d.path, "do", "give kazoo's nodes Curator's names: see \"Java and Python on one path\" in the README")
	}
}

// reportPermits logs once for each path that another process uses it with another number of
// permits.
func (d *directory) reportPermits(node string, permits int) {
	if d.actor.Manager.FirstMisuse(d.path, "permits") {
		d.actor.Manager.Log.Error("two processes use one path with different numbers of permits: more may hold than the smaller number",
			"path", strings.TrimSuffix(d.path, queue.LeasesSuffix), "here", d.recipe.Rule.Permits, "there", permits, "node", d.nodePath(node),
			"do", "give the same number in all programs, or use SharedPermits")
	}
}

// reportUnknownChild logs a child of the directory that is no contender.
func (d *directory) reportUnknownChild(name string) {
	switch {
	case d.recipe.Rule.CountUnknown && queue.IsKazooLease(name): // of a semaphore in Curator's directories
	case d.recipe.Rule.CountUnknown:
		d.actor.Manager.Log.Warn("child of a semaphore's leases is no lease and takes a permit", "path", d.path, "name", name,
			"do", "delete it if it is not a permit of yours")
	case otherRecipe(name) != "":
		reportOthers(d.actor.Manager, d.path, d.recipe, []string{name})
	default:
		d.actor.Manager.Log.Warn("child of a lock's directory is no contender and is ignored", "path", d.path, "name", name,
			"do", "delete it if it is not data of yours")
	}
}

// reportPersistent logs, once for each, the persistent nodes that a contender waits for.
func (d *directory) reportPersistent(nodes []string) {
	for _, node := range nodes {
		if path := d.nodePath(node); d.actor.Manager.FirstMisuse(path, "persistent") {
			d.actor.Manager.Log.Warn("a lock waits for a persistent node, which no end of a session deletes", "path", d.path, "node", path,
				"do", "delete it if no client holds the lock by it")
		}
	}
}

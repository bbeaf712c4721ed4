package actors

import (
	"math"
	"strings"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// Two recipes on one path of two processes do not exclude each other. Within a process the
// manager refuses that; across processes only the names in the directory show it, which the
// lock's actor reports.

// otherRecipe returns the recipe that makes children of a name, if that does not exclude a
// recipe whose contenders have other names, and "" for a name of no recipe.
func otherRecipe(name string) string {
	switch {
	case name == requestQueueSuffix[1:], name == leaseSuffix[1:]:
		return "semaphore"
	case name == simpleLockNode:
		return "simple mutex"
	case name == simpleWriterNode, strings.HasPrefix(name, simpleReaderPrefix):
		return "simple read-write lock"
	case queue.IsContender(name):
		return "mutex, a read-write lock or a custom lock"
	}
	return ""
}

// reportMisuse logs once for each path that another recipe uses it, too.
func (m *manager) reportMisuse(path string, recipe *recipe, name string) {
	if _, reported := m.misused.LoadOrStore(path, true); !reported {
		m.log.Error("two recipes use one path, and do not exclude each other: give each of them a path of its own",
			"path", path, "here", recipe.String(), "other", otherRecipe(name), "child", name)
	}
}

// The names of the simple forms' nodes: of the gates, and what a reader's begins with.
const (
	simpleLockNode     = "lock"
	simpleWriterNode   = "W"
	simpleReaderPrefix = "R-"
)

// listDirectoryID is the id of the pool's question what is beside its two directories. No other
// question has it.
const listDirectoryID = math.MaxUint64

// listDirectory asks what is in the semaphore's directory.
func (p *semaphoreActor) listDirectory(epoch uint64) {
	p.bridge.SendList(&messages.List{Id: listDirectoryID, Epoch: epoch, Directory: p.path}, p.self)
}

// onDirectoryListed reports contenders of other recipes.
func (p *semaphoreActor) onDirectoryListed(names []string) {
	for _, name := range names {
		if other := otherRecipe(name); other != "" && other != "semaphore" {
			p.manager.reportMisuse(p.path, p.recipe, name)
		}
	}
}

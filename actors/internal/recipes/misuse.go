package recipes

import (
	"math"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// Two recipes on one path exclude each other only if their rules know each other's names. Within a
// process the manager refuses a second recipe. Across processes only the names in the directory show
// it: the lock's actor reports names that its rule does not know.

// otherRecipe returns the recipe that creates children of the name, if that recipe does not
// exclude recipes whose contenders have other names. It returns "" for a name of no recipe.
func otherRecipe(name string) string {
	switch {
	case name == RequestQueueSuffix[1:], name == LeaseSuffix[1:]:
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
func reportMisuse(e *shell.Entry, child string) {
	if e.Manager.FirstMisuse(e.Path) {
		e.Manager.Log.Error("two recipes use one path, and do not exclude each other: give each of them a path of its own",
			"path", e.Path, "here", e.Recipe.String(), "other", otherRecipe(child), "child", child,
			"do", "change the path in one of the programs")
	}
}

// reportUnknownChild logs a child of the directory that is no contender.
func (l *lockActor) reportUnknownChild(name string) {
	switch {
	case l.Recipe.Rule.CountUnknown:
		l.Manager.Log.Warn("child of a semaphore's leases is no lease and takes a permit", "path", l.Path, "name", name,
			"do", "delete it if it is not a permit of yours")
	case otherRecipe(name) != "":
		reportMisuse(l.Entry, name)
	default:
		l.Manager.Log.Warn("child of a lock's directory is no contender and is ignored", "path", l.Path, "name", name,
			"do", "delete it if it is not data of yours")
	}
}

// The names of the simple forms' nodes: the lock nodes, and the prefix of a reader's owner node.
const (
	simpleLockNode     = "lock"
	simpleWriterNode   = "W"
	simpleReaderPrefix = "R-"
)

// listDirectoryID is the id of a semaphore's question what its own directory holds besides the
// directories of its locks below. No other question has this id.
const listDirectoryID = math.MaxUint64

// listDirectory asks what is in the semaphore's directory.
func (s *semaphoreActor) listDirectory(epoch uint64) {
	s.bridge.SendList(&messages.List{Id: listDirectoryID, Epoch: epoch, Directory: s.Path}, s.Self)
}

// reportOthers reports contenders of other recipes in the semaphore's directory.
func (s *semaphoreActor) reportOthers(names []string) {
	for _, name := range names {
		if other := otherRecipe(name); other != "" && other != "semaphore" {
			reportMisuse(s.Entry, name)
		}
	}
}

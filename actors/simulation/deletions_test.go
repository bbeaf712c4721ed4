package simulation

import (
	gopath "path"
	"strings"
	"sync"
	"time"
)

// noteForcedDeletion notes that a deletion by force is over.
func (sim *simulation) noteForcedDeletion(path string) { sim.deletedAt[path] = sim.now() }

// deletions holds the time and the zxid of the last deletion of each path, as the server reports
// them.
type deletions struct {
	mu sync.Mutex
	of map[string]deletion
}

type deletion struct {
	at   time.Duration
	zxid int64
}

func (sim *simulation) onDeleted(path string, zxid int64) {
	sim.deletions.mu.Lock()
	defer sim.deletions.mu.Unlock()
	sim.deletions.of[path] = deletion{sim.now(), zxid}
}

func (d *deletions) get(path string) deletion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of[path]
}

// predecessorOutlived reports whether a contender that was ahead of a deleted node still exists, or
// left so late that the process cannot have learned of it before the deletion. delay is the least
// time until the process learns of a departure. Contenders of the same process have the same
// prefix. They count only if their nodes were deleted by force.
func (sim *simulation) predecessorOutlived(node string, delay time.Duration) bool {
	directory, name := gopath.Split(node)
	ownPrefix := name[:min(len("_c_01234567-89ab-cdef-0123-"), len(name))]
	ahead := func(path string) bool {
		sibling, found := strings.CutPrefix(path, directory)
		if _, forced := sim.deletionStarted[path]; strings.HasPrefix(sibling, ownPrefix) && !forced {
			return false
		}
		return found && sequenceOf(sibling) >= 0 && int32(sequenceOf(sibling)-sequenceOf(name)) < 0
	}
	for line := range strings.Lines(sim.server.Dump()) {
		if path, _, _ := strings.Cut(line, " "); ahead(path) {
			return true
		}
	}
	sim.deletions.mu.Lock()
	defer sim.deletions.mu.Unlock()
	for path, deletion := range sim.deletions.of {
		if deletion.at > sim.deletions.of[node].at-delay && ahead(path) {
			return true
		}
	}
	return false
}

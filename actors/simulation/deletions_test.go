package simulation

import (
	gopath "path"
	"strings"
	"sync"
	"time"
)

// noteGone notes that a node is deleted.
func (w *world) noteGone(path string) { w.gone[path] = w.now() }

// deletions holds for each path the time and the zxid of its last deletion, as the server reports them.
type deletions struct {
	mu sync.Mutex
	of map[string]deletion
}

type deletion struct {
	at   time.Duration
	zxid int64
}

func (w *world) noteDeletion(path string, zxid int64) {
	w.deletions.mu.Lock()
	defer w.deletions.mu.Unlock()
	w.deletions.of[path] = deletion{w.now(), zxid}
}

func (d *deletions) get(path string) deletion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of[path]
}

// isOutlived reports whether a contender that was ahead of a node that is gone stays, or left so late that no
// process to which news take that long heard of it before the node was gone. Contenders of the same process,
// whose nodes begin alike up to a number, count only if their nodes were deleted by force.
func (w *world) isOutlived(node string, news time.Duration) bool {
	directory, name := gopath.Split(node)
	own := name[:min(len("_c_01234567-89ab-cdef-0123-"), len(name))]
	ahead := func(path string) bool {
		sibling, is := strings.CutPrefix(path, directory)
		if _, forced := w.deleted[path]; strings.HasPrefix(sibling, own) && !forced {
			return false
		}
		return is && sequence(sibling) >= 0 && int32(sequence(sibling)-sequence(name)) < 0
	}
	for line := range strings.Lines(w.server.Dump()) {
		if path, _, _ := strings.Cut(line, " "); ahead(path) {
			return true
		}
	}
	w.deletions.mu.Lock()
	defer w.deletions.mu.Unlock()
	for path, deletion := range w.deletions.of {
		if deletion.at > w.deletions.of[node].at-news && ahead(path) {
			return true
		}
	}
	return false
}

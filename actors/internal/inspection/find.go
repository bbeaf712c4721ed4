package inspection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

const (
	findDepth      = 16       // levels below the path
	findMost       = 100_000  // directories
	findBytes      = 64 << 20 // of the paths of a level, so that many large directories cannot take more
	findConcurrent = 16       // requests under way: the bridge has no more
)

// checkTree returns an error for a path that find does not accept.
func checkTree(path string) error {
	if err := zkpath.Check(path); err != nil {
		return check.Invalid("path " + err.Error())
	}
	return nil
}

// Skipped is the error of a search that is not complete: the reasons, by the directories that it has not
// looked into, or not into all of their nodes.
type Skipped map[string]error

// Error implements error.
func (s Skipped) Error() string { return fmt.Sprintf("%d directories were skipped", len(s)) }

// find returns the paths of the locks at the path and below it that have a contender, sorted. It names no
// lock and no directory that the asker may not inspect. With an error it returns the locks that it has
// found until then.
func (t *Target) find(ctx context.Context, _ struct{}) ([]string, error) {
	if err := checkTree(t.Path); err != nil {
		return nil, err
	}
	f := finder{bridge: t.Manager.Bridge, may: func(path string) bool { return t.mayInspect(path) == nil }, found: map[string]form{}, skipped: Skipped{}}
	// The barrier: whatever is read after it is as new as the call.
	if _, err := f.bridge.GetData(ctx, t.Path); err != nil && !isAboutDirectory(err) {
		return nil, err
	}
	level := []string{t.Path}
	for depth, left := 0, findMost; len(level) > 0; depth++ {
		left -= len(level)
		if err := f.look(ctx, level); err != nil {
			return f.paths(), err
		}
		level = f.descend(depth, left)
	}
	f.hideSkipped(t.Path)
	if len(f.skipped) > 0 {
		return f.paths(), f.skipped
	}
	return f.paths(), nil
}

// hideSkipped takes out of the reasons the directories that the caller may not know.
func (f *finder) hideSkipped(top string) {
	hidden := 0
	for directory := range f.skipped {
		if !f.may(directory) {
			delete(f.skipped, directory)
			hidden++
		}
	}
	if hidden > 0 && f.skipped[top] == nil {
		f.skipped[top] = fmt.Errorf("%w: %d directories below %s, which are not to be named, are not looked into", messages.Reason_NO_AUTH, hidden, top)
	}
}

// isAboutDirectory reports whether ZooKeeper has refused to show one directory, and goes on with
// others.
func isAboutDirectory(err error) bool {
	return errors.Is(err, messages.Reason_NO_AUTH) || errors.Is(err, messages.Reason_LIMIT_EXCEEDED) || errors.Is(err, messages.Reason_UNAVAILABLE)
}

// finder looks for locks.
type finder struct {
	bridge zkbridge.Internals
	may    func(path string) bool // the asker may know of a path

	mu      sync.Mutex
	found   map[string]form     // by path
	skipped Skipped             // reasons, by directory
	next    map[string][]string // directories of the next level, by the directory that has them
	bytes   int                 // of the paths in next
}

// look looks at the directories of one level, and notes those of the next.
func (f *finder) look(ctx context.Context, level []string) error {
	f.next, f.bytes = map[string][]string{}, 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(findConcurrent)
	for _, directory := range level {
		g.Go(func() error {
			err := f.lookAt(ctx, directory)
			if err != nil && isAboutDirectory(err) {
				return nil // children has noted it
			}
			return err
		})
	}
	return g.Wait()
}

// descend returns the directories of the next level, left at most. It leaves out those in the
// largest directories.
func (f *finder) descend(depth, left int) (level []string) {
	bySize := slices.SortedFunc(maps.Keys(f.next), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(f.next[a]), len(f.next[b])), cmp.Compare(a, b))
	})
	for _, directory := range bySize {
		inside := f.next[directory]
		n := min(len(inside), left)
		if depth == findDepth {
			n = 0
		}
		if n < len(inside) {
			slices.Sort(inside)
			f.skipped[directory] = fmt.Errorf("%w: %d of the nodes in %s are not looked at, because Find looks at %d directories and %d levels of them: ask for a part",
				messages.Reason_LIMIT_EXCEEDED, len(inside)-n, directory, findMost, findDepth)
		}
		level, left = append(level, inside[:n]...), left-n
	}
	return level
}

func (f *finder) lookAt(ctx context.Context, directory string) error {
	children, err := f.children(ctx, directory)
	if err != nil {
		return err
	}
	found, nodes := recognize(children)
	parts := map[string]bool{} // of the lock
	for _, c := range nodes {
		parts[c.Name] = true
	}
	if found.name == "" && slices.ContainsFunc(children, isLeases) {
		r := reader{children: func(directory string) ([]zkbridge.Child, error) { return f.children(ctx, directory) }}
		q, err := r.readSemaphore(directory)
		if err != nil && !isAboutDirectory(err) {
			return err
		}
		if found.name, found.below = q.Recipe, true; found.name != "" {
			parts[queue.RequestQueueSuffix[1:]], parts[queue.LeasesSuffix[1:]] = true, true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if found.name != "" {
		f.found[directory] = found
	}
	var inside []string
	for _, c := range children {
		path := zkpath.Join(directory, c.Name)
		if !parts[c.Name] && check.Reserved("", path) == nil {
			inside = append(inside, path)
		}
	}
	f.noteNext(directory, inside)
	return nil
}

// noteNext notes the nodes in a directory that the next level has. It skips the directory if there are too
// many bytes of these. The caller holds mu.
func (f *finder) noteNext(directory string, inside []string) {
	bytes := 0
	for _, path := range inside {
		bytes += len(path)
	}
	if f.bytes+bytes > findBytes {
		f.skipped[directory] = fmt.Errorf("%w: the nodes in %s are not looked at, because Find keeps %d bytes of paths at one time: ask for a part",
			messages.Reason_LIMIT_EXCEEDED, directory, findBytes)
		return
	}
	f.bytes += bytes
	if len(inside) > 0 {
		f.next[directory] = inside
	}
}

// children returns the names in a directory, or notes why it is skipped. It reads the nodes that
// are contenders only if they are ephemeral.
func (f *finder) children(ctx context.Context, directory string) ([]zkbridge.Child, error) {
	children, _, err := f.bridge.WatchChildren(ctx, directory, func(name string) bool {
		return mayContend(name) && !queue.IsContender(name)
	}, nil)
	if err != nil && isAboutDirectory(err) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.skipped[directory] = err
	}
	return children, err
}

// paths returns what was found. A kazoo semaphore's request queue is a part of it.
func (f *finder) paths() (all []string) {
	for path, found := range f.found {
		if !f.may(path) || found.below && !(f.may(path+queue.RequestQueueSuffix) && f.may(path+queue.LeasesSuffix)) {
			continue
		}
		if base, is := strings.CutSuffix(path, queue.KazooRequestQueueSuffix); !is || !f.found[base].kazooSemaphore {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

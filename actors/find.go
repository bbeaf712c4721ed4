package actors

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
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

const (
	findDepth      = 16      // levels below the path of a Find
	findMost       = 100_000 // directories of a Find
	findConcurrent = 16      // requests of a Find under way: the bridge has no more
)

// SkippedError is the error of a Find that has not looked into some directories, or not into all of
// their nodes. Locks at them and below them may be missing from its result. errors.Is finds each of
// the reasons: ErrNoAuth, ErrLimit (of Find or of Config.MaxReply), ErrUnavailable.
type SkippedError struct {
	// Reasons has the reason for each directory, by its path.
	Reasons map[string]error
}

// Directories returns the paths of the directories, sorted.
func (e *SkippedError) Directories() []string { return slices.Sorted(maps.Keys(e.Reasons)) }

// Error returns a text with the number of the directories, and the reasons for the first ones.
func (e *SkippedError) Error() string {
	const named = 5
	all := e.Directories()
	text := fmt.Sprintf("the list of locks is not complete: %d directories were skipped", len(all))
	if len(all) == 1 {
		text = "the list of locks is not complete: a directory was skipped"
	}
	for i, directory := range all[:min(named, len(all))] {
		text += fmt.Sprintf("%c %v", ":;"[min(i, 1)], e.Reasons[directory])
	}
	if more := len(all) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Unwrap returns the reasons, in the order of the directories.
func (e *SkippedError) Unwrap() (all []error) {
	for _, directory := range e.Directories() {
		all = append(all, e.Reasons[directory])
	}
	return all
}

// Find returns the paths of the locks at path and below it that have a holder or a waiter, of any
// client and library, sorted. path may be "/". A lock that is not in use has no nodes, and is not
// found.
//
// Find lists the directories one level after another, 16 at a time, and reads no data: a node that
// belongs to no lock costs one request. It leaves out the library's own directories. It skips
// directories that this process may not list, and those with too many nodes for Config.MaxReply. It
// looks at 100,000 directories and 16 levels of them: beyond that it skips a part of the
// directories with the most nodes, and what is deeper. If it has skipped any, it returns a
// [SkippedError] that names them, together with the locks elsewhere.
//
// A lock is found if it was in use before the call and is in use throughout. Find blocks until
// ZooKeeper has answered, ctx ends, or the connection is lost (ErrSuspended). With an error it
// returns the locks that it has found until then.
func (l *Locks) Find(ctx context.Context, path string) ([]string, error) {
	return askFind.one(ctx, l.at(path), none{})
}

func (h *handle) find(ctx context.Context, _ none) ([]string, error) {
	if err := zkpath.Check(h.path); err != nil {
		return nil, check.Invalid("path " + err.Error())
	}
	f := finder{bridge: h.manager.Bridge, found: map[string]recipes.Form{}, skipped: map[string]error{}}
	// The barrier: whatever is read after it is as new as the call.
	if _, err := f.bridge.GetData(ctx, h.path); err != nil && !isAboutDirectory(err) {
		return nil, err
	}
	level := []string{h.path}
	for depth, left := 0, findMost; len(level) > 0; depth++ {
		left -= len(level)
		if err := f.look(ctx, level); err != nil {
			return f.paths(), err
		}
		level = f.descend(depth, left)
	}
	if len(f.skipped) > 0 {
		return f.paths(), &SkippedError{f.skipped}
	}
	return f.paths(), nil
}

// isAboutDirectory reports whether ZooKeeper has refused to show one directory, and goes on with
// others.
func isAboutDirectory(err error) bool {
	return errors.Is(err, ErrNoAuth) || errors.Is(err, ErrLimit) || errors.Is(err, ErrUnavailable)
}

// finder looks for locks.
type finder struct {
	bridge *zkbridge.Bridge

	mu      sync.Mutex
	found   map[string]recipes.Form // by path
	skipped map[string]error        // reasons, by directory
	next    map[string][]string     // directories of the next level, by the directory that has them
}

// look looks at the directories of one level, and notes those of the next.
func (f *finder) look(ctx context.Context, level []string) error {
	f.next = map[string][]string{}
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
				ErrLimit, len(inside)-n, directory, findMost, findDepth)
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
	form, contenders := recognize(children)
	parts := map[string]bool{} // of the lock
	for _, c := range contenders {
		parts[c.Name] = true
	}
	if form.Name == "" && slices.ContainsFunc(children, isLeases) {
		q := Queue{Path: directory}
		r := queueReader{children: func(directory string) ([]zkbridge.Child, error) { return f.children(ctx, directory) }}
		if err := r.readSemaphore(&q); err != nil && !isAboutDirectory(err) {
			return err
		}
		if form.Name = q.Recipe; form.Name != "" {
			parts[queue.RequestQueueSuffix[1:]], parts[queue.LeasesSuffix[1:]] = true, true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if form.Name != "" {
		f.found[directory] = form
	}
	for _, c := range children {
		path := zkpath.Join(directory, c.Name)
		if !parts[c.Name] && check.Reserved("", path) == nil {
			f.next[directory] = append(f.next[directory], path)
		}
	}
	return nil
}

// children returns the names in a directory, or notes why it is skipped. It reads the nodes that
// are contenders only if they are ephemeral.
func (f *finder) children(ctx context.Context, directory string) ([]zkbridge.Child, error) {
	children, _, err := f.bridge.WatchChildren(ctx, directory, func(name string) bool {
		return recipes.MayContend(name) && !queue.IsContender(name)
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
	for path := range f.found {
		if base, is := strings.CutSuffix(path, queue.KazooRequestQueueSuffix); !is || !f.found[base].KazooSemaphore {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

const (
	findDepth      = 16      // levels below the path of a Find
	findMost       = 100_000 // directories of a Find
	findConcurrent = 16      // requests of a Find under way: the bridge has no more
)

// Find returns the paths of the locks at path and below it that have a holder or a waiter, of any client
// and library, sorted. path may be "/". A lock that is not in use has no nodes, and is not found.
//
// Find lists the directories one level after another, 16 at a time, and reads no data: a node that
// belongs to no lock costs one request. It leaves out directories that this process may not list, and
// the library's own. If there are more than 100,000 directories, or more than 16 levels of them, it
// returns ErrLimit and what it has found.
//
// A lock is found if it was in use before the call and is in use throughout. Find blocks until ZooKeeper
// has answered, ctx ends, or the connection is lost (ErrSuspended).
func (l *Locks) Find(ctx context.Context, path string) ([]string, error) {
	if err := zkbridge.CheckPath(path); err != nil {
		return nil, shell.Invalid("path " + err.Error())
	}
	// The barrier: whatever is read after it is as new as the call.
	if _, err := l.bridge.Children(ctx, path, func(string) bool { return false }); err != nil {
		return nil, err
	}
	f := finder{bridge: l.bridge, found: map[string]recipes.Form{}}
	level := []string{path}
	for depth, seen := 0, 0; len(level) > 0; depth++ {
		if seen += len(level); depth > findDepth || seen > findMost {
			return f.paths(), fmt.Errorf("%w: locks below %s: there are more than %d directories or %d levels of them; ask for a part of them",
				ErrLimit, path, findMost, findDepth)
		}
		var err error
		if level, err = f.look(ctx, level); err != nil {
			return nil, err
		}
	}
	return f.paths(), nil
}

// finder looks for locks.
type finder struct {
	bridge shell.Bridge

	mu    sync.Mutex
	found map[string]recipes.Form // by path
	next  []string                // directories of the next level
}

// look looks at the directories of one level, and returns those of the next.
func (f *finder) look(ctx context.Context, level []string) ([]string, error) {
	f.next = nil
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(findConcurrent)
	for _, directory := range level {
		g.Go(func() error {
			err := f.lookAt(ctx, directory)
			if errors.Is(err, ErrNoAuth) {
				return nil
			}
			return err
		})
	}
	err := g.Wait()
	return f.next, err
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
		if err := r.readSemaphore(&q); err != nil && !errors.Is(err, ErrNoAuth) {
			return err
		}
		if form.Name = q.Recipe; form.Name != "" {
			parts[recipes.RequestQueueSuffix[1:]], parts[recipes.LeaseSuffix[1:]] = true, true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if form.Name != "" {
		f.found[directory] = form
	}
	for _, c := range children {
		path := strings.TrimSuffix(directory, "/") + "/" + c.Name
		if !parts[c.Name] && shell.CheckReserved("", path) == nil {
			f.next = append(f.next, path)
		}
	}
	return nil
}

// children returns the names in a directory. It reads the nodes that are contenders only if they are
// ephemeral.
func (f *finder) children(ctx context.Context, directory string) ([]zkbridge.Child, error) {
	children, _, err := f.bridge.WatchChildren(ctx, directory, func(name string) bool {
		return recipes.MayContend(name) && !queue.IsContender(name)
	}, nil)
	return children, err
}

// paths returns what was found. A kazoo semaphore's request queue is a part of it.
func (f *finder) paths() (all []string) {
	for path := range f.found {
		if base, is := strings.CutSuffix(path, kazooRequestQueueSuffix); !is || !f.found[base].KazooSemaphore {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

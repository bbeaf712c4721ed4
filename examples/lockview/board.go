package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// board holds the last read queues of the locks below a path. Each change has a
// version, so that the server can send a page the changes since the page's version.
type board struct {
	locks source
	root  string

	mu      sync.Mutex
	shown   map[string]shown      // by path
	groups  map[string]shownGroup // by path
	state   state
	changed chan struct{} // closed at the next change

	// changes has the path, of a lock or a group, of each change after the version forgotten, or "" for a change of state.
	changes   []string
	forgotten uint64
}

// source is the part of actors.Locks that a board needs.
type source interface {
	FindLocks(ctx context.Context, path string) ([]string, error)
	Observe(ctx context.Context, path string) <-chan actors.Queue
	Sessions(ctx context.Context) <-chan zkbridge.Session
	SharedCount(path string, initial int) *actors.SharedCount
	Partitions(path string, count int) *actors.Partitions
}

// shown is a lock.
type shown struct {
	lock     lock
	observed bool               // pages get the lock after its first observation
	stop     context.CancelFunc // of the observer
}

// state is the state of the connection to ZooKeeper, and what the board lacks.
type state struct {
	State   string    `json:"state"`
	ID      string    `json:"id"`
	Since   time.Time `json:"since"`
	Skipped string    `json:"skipped,omitempty"` // why locks may be missing
}

const (
	// findEvery is the interval at which the board looks for new locks. It takes a fifth of the
	// time at most.
	findEvery = 2 * time.Second
	// maxChanges bounds the changes that the board remembers. A page that is further behind gets
	// the whole board.
	maxChanges = 10_000
)

func newBoard(locks source, root string) *board {
	return &board{locks: locks, root: root, shown: map[string]shown{}, groups: map[string]shownGroup{}, changed: make(chan struct{})}
}

// run updates the board until ctx ends.
func (b *board) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { b.watchSession(ctx) })
	for {
		start := time.Now()
		found, err := b.locks.FindLocks(ctx, b.root)
		b.observe(ctx, &running, b.withoutGroups(ctx, &running, found, err), err)
		if !pause(ctx, max(findEvery, 4*time.Since(start)), nil) {
			return
		}
	}
}

// observe starts an observer for each new lock, and ends the observers of locks that are not there
// any more. If FindLocks has returned an error, only those are not there that their observers show free.
func (b *board) observe(ctx context.Context, running *sync.WaitGroup, found []string, err error) {
	there := map[string]bool{}
	for _, path := range found {
		there[path] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setSkipped(err)
	for path, s := range b.shown {
		if !there[path] && (err == nil || s.isFree()) {
			s.stop()
			delete(b.shown, path)
			b.change(path)
		}
	}
	for _, path := range found {
		if _, known := b.shown[path]; known {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		b.shown[path] = shown{stop: stop}
		running.Go(func() {
			for q := range b.locks.Observe(ctx, path) {
				b.put(q)
			}
		})
	}
}

func (s shown) isFree() bool { return s.observed && s.lock.Error == "" && len(s.lock.Contenders) == 0 }

// setSkipped notes the error of a FindLocks, unless it is about the connection: the pages hear of that
// in another way. The caller holds mu.
func (b *board) setSkipped(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != b.state.Skipped && !errors.Is(err, actors.ErrSuspended) {
		b.state.Skipped = text
		b.change("")
	}
}

func (b *board) put(q actors.Queue) {
	l := newLock(q)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, known := b.shown[q.Path]; known {
		b.shown[q.Path] = shown{l, true, s.stop}
		b.change(q.Path)
	}
}

func (b *board) watchSession(ctx context.Context) {
	for s := range b.locks.Sessions(ctx) {
		b.mu.Lock()
		b.state.State, b.state.ID, b.state.Since = s.State.String(), messages.FormatSession(s.ID), time.Now()
		b.change("")
		b.mu.Unlock()
	}
}

// change counts a change of the lock at path, or of the state. The caller holds mu.
func (b *board) change(path string) {
	b.changes = append(b.changes, path)
	if n := len(b.changes) - maxChanges; n > maxChanges { // seldom, because it copies
		b.changes = slices.Clone(b.changes[n:])
		b.forgotten += uint64(n)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// update has the changes of the board since a version.
type update struct {
	Whole   bool     `json:"whole"` // the update has all locks
	Changed []lock   `json:"changed"`
	Groups  []group  `json:"groups"` // that have changed
	Gone    []string `json:"gone"`
}

// since returns the changes after version, the present version, and a channel that is closed at
// the next change.
func (b *board) since(version uint64) (u update, s state, now uint64, next <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u = update{Whole: version == 0 || version < b.forgotten, Changed: []lock{}, Groups: []group{}, Gone: []string{}}
	paths := slices.Values(slices.Concat(slices.Collect(maps.Keys(b.shown)), slices.Collect(maps.Keys(b.groups))))
	if !u.Whole {
		paths = slices.Values(slices.Compact(slices.Sorted(slices.Values(b.changes[version-b.forgotten:]))))
	}
	for path := range paths {
		switch each, group := b.shown[path], b.groups[path]; {
		case group.observed:
			u.Groups = append(u.Groups, group.group)
		case each.observed:
			u.Changed = append(u.Changed, each.lock)
		case path != "" && !u.Whole:
			u.Gone = append(u.Gone, path)
		}
	}
	slices.SortFunc(u.Changed, func(a, b lock) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(u.Groups, func(a, b group) int { return cmp.Compare(a.Path, b.Path) })
	return u, b.state, b.forgotten + uint64(len(b.changes)), b.changed
}

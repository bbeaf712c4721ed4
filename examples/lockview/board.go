package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// board holds the last read queues of the locks below a path. Each change has a
// version, so that the server can send a page the changes since the page's version.
type board struct {
	locks *actors.Locks
	root  string

	mu      sync.Mutex
	version uint64
	shown   map[string]shown // by path
	gone    map[string]uint64
	session sessionState
	changed chan struct{} // closed at the next change
}

// shown is a lock with the version of its last change.
type shown struct {
	lock    lock
	version uint64
	stop    context.CancelFunc // of the observer
}

// sessionState is the state of the connection to ZooKeeper.
type sessionState struct {
	State string    `json:"state"`
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// findEvery is the interval at which the board looks for new locks.
const findEvery = 2 * time.Second

func newBoard(locks *actors.Locks, root string) *board {
	return &board{locks: locks, root: root, shown: map[string]shown{}, gone: map[string]uint64{}, changed: make(chan struct{})}
}

// run updates the board until ctx ends.
func (b *board) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { b.watchSession(ctx) })
	timer := time.NewTicker(findEvery)
	defer timer.Stop()
	for {
		if found, err := b.locks.Find(ctx, b.root); err == nil {
			b.observe(ctx, &running, found)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// observe starts an observer for each new lock, and ends the observers of locks that are not there any more.
func (b *board) observe(ctx context.Context, running *sync.WaitGroup, found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path, s := range b.shown {
		if !slices.Contains(found, path) {
			s.stop()
			b.change()
			delete(b.shown, path)
			b.gone[path] = b.version
		}
	}
	for _, path := range found {
		if _, known := b.shown[path]; known {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		delete(b.gone, path)
		b.shown[path] = shown{stop: stop} // pages get the lock after its first observation
		running.Go(func() {
			for q := range b.locks.Observe(ctx, path) {
				b.put(q)
			}
		})
	}
}

func (b *board) put(q actors.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, known := b.shown[q.Path]; known {
		b.change()
		b.shown[q.Path] = shown{newLock(q), b.version, s.stop}
	}
}

func (b *board) watchSession(ctx context.Context) {
	for s := range b.locks.Sessions(ctx) {
		b.mu.Lock()
		b.change()
		b.session = sessionState{State: s.State.String(), ID: messages.FormatSession(s.ID), Since: time.Now()}
		b.mu.Unlock()
	}
}

// change counts a change. The caller holds mu.
func (b *board) change() {
	b.version++
	close(b.changed)
	b.changed = make(chan struct{})
}

// update has the changes of the board since a version.
type update struct {
	Whole   bool     `json:"whole"` // the update has all locks
	Changed []lock   `json:"changed"`
	Gone    []string `json:"gone"`
}

// since returns the changes after version, the present version, and a channel that is closed at
// the next change.
func (b *board) since(version uint64) (u update, s sessionState, now uint64, next <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u = update{Whole: version == 0, Changed: []lock{}, Gone: []string{}}
	for _, path := range slices.Sorted(maps.Keys(b.shown)) {
		if each := b.shown[path]; each.version > version {
			u.Changed = append(u.Changed, each.lock)
		}
	}
	for path, v := range b.gone {
		if v > version {
			u.Gone = append(u.Gone, path)
		}
	}
	return u, b.session, b.version, b.changed
}

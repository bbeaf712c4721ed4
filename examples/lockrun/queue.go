package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/examples/internal/contenders"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// contender is a holder or waiter of a lock.
type contender struct {
	contenders.Contender
	mine bool // it is this lockrun
}

// nodeName returns the last part of the path of the contender's node.
func (c contender) nodeName() string {
	_, name := zkpath.Split(c.Node)
	return name
}

// lockQueue has the contenders of a lock, in queue order.
type lockQueue struct {
	path    string
	recipe  string
	permits int // 0 if it is not known
	all     []contender
}

// holders returns the contenders that hold.
func (q lockQueue) holders() []contender {
	holders := []contender{}
	for _, c := range q.all {
		if c.Holds {
			holders = append(holders, c)
		}
	}
	return holders
}

// numbers returns the numbers of permits that the contenders' processes know, in order.
func (q lockQueue) numbers() []int {
	known := map[int]bool{}
	for _, c := range q.all {
		known[c.Permits] = true
	}
	delete(known, 0)
	return slices.Sorted(maps.Keys(known))
}

// inspect reads the queue of a lock.
func inspect(ctx context.Context, locks *actors.Locks, path string) (lockQueue, error) {
	q, err := locks.Inspect(ctx, path)
	return queueOf(q), err
}

func queueOf(q actors.Queue) lockQueue {
	all := make([]contender, len(q.Participants))
	for i, p := range q.Participants {
		all[i] = contender{contenders.New(p, i), p.Local}
	}
	return lockQueue{q.Path, q.Recipe, q.Permits, all}
}

// checkLock takes the argument that names a lock, or a node of its queue.
func (o *options) checkLock() error {
	switch {
	case len(o.args) == 0:
		return errors.New("the lock is missing: it must be a path on ZooKeeper, as in /locks/backup")
	case len(o.args) > 1:
		return fmt.Errorf("argument %q: one lock is accepted, and %s came before", o.args[1], o.args[0])
	}
	return o.setLock(o.args[0])
}

func (o *options) setLock(path string) error {
	o.path = path
	directory, name := zkpath.Split(path)
	if queue.IsContender(name) {
		o.node, o.path = path, directory
		if marker, _ := queue.Marker(name); marker == queue.LeaseMarker {
			o.path = strings.TrimSuffix(directory, queue.LeasesSuffix)
		}
	}
	return checkPath("path", path)
}

package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// Observe returns a channel with the queue of the lock at path, as Inspect returns it, and then
// again whenever contenders come or go:
//
//	for q := range locks.Observe(ctx, "/locks/orders") { fmt.Println(q) }
//
// A slow reader finds the newest queue, not those between, and delays no other part of the program.
// The queue is read ten times a second at most, and what a new contender brings is read once: a hot
// lock with many waiters costs little more than an idle one. ZooKeeper has one watch of this
// session for each of the lock's directories, however many observers there are; while the directory
// does not exist, Observe asks for it every second.
//
// Participants that come to hold meanwhile have a HeldSince, as the holders of this process have.
//
// Observe outlives the loss of connections and sessions. While the queue cannot be read, its Err is
// set, and the participants are those that were read last: see [Queue]. The server that this
// process is connected to may lag behind the others: see Inspect. The channel is closed when ctx
// ends or Locks is closed. If path is not acceptable or ctx is nil, the channel has one Queue with
// the Err, and is closed.
func (l *Locks) Observe(ctx context.Context, path string) <-chan Queue {
	return observed(ctx, l.at(path))
}

func observed(ctx context.Context, t *inspection.Target) <-chan Queue {
	out := make(chan Queue, 1)
	observe(ctx, t, func(q Queue) { replace(out, q) }, func() { close(out) })
	return out
}

// replace puts the newest state into a channel with room for one.
func replace[T any](out chan T, state T) {
	select {
	case <-out: // not read yet
	default:
	}
	out <- state
}

// ObserveTo is Observe for an actor: it gets each Queue as a message, in order, from the start
// until ctx ends, the actor ends, or Locks is closed. An actor that is slow gets all of them.
func (l *Locks) ObserveTo(ctx context.Context, path string, to *actor.PID) {
	stop := func() {}
	if ctx != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		unwatch := l.manager.OnEnd(to, cancel)
		stop = func() {
			unwatch()
			cancel()
		}
	}
	observe(ctx, l.at(path), func(q Queue) { l.manager.ActorSystem().Root.Send(to, q) }, stop)
}

func observe(ctx context.Context, t *inspection.Target, publish func(Queue), end func()) {
	err := cmp.Or(t.Problem, check.Path(t.Path))
	if ctx == nil {
		err = check.ErrNilContext
	}
	if err != nil {
		publish(Queue{Path: t.Path, Err: err})
		end()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(t.Manager.Ended(), cancel)
	go func() {
		t.Observe(ctx, func(snapshot inspection.Snapshot, err error) {
			q := queueOf(t.Path, snapshot)
			q.Err = err
			publish(q)
		})
		unwatch()
		cancel()
		end()
	}()
}

// SkippedError is the error of a FindLocks that has not looked into some directories, or not into all of
// their nodes. Locks at them and below them may be missing from its result. errors.Is finds each of
// the reasons: ErrNoAuth, ErrLimit (of FindLocks or of Config.MaxReply), ErrUnavailable.
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

// FindLocks returns the paths of the locks at path and below it that have a holder or a waiter, of any
// client and library, sorted. path may be "/". A lock that is not in use has no nodes, and is not
// found.
//
// FindLocks lists the directories one level after another, 16 at a time, and reads no data: a node that
// belongs to no lock costs one request. It leaves out the library's own directories. It skips
// directories that this process may not list, and those with too many nodes for Config.MaxReply. It
// looks at 100,000 directories and 16 levels of them, and keeps 64 MiB of the paths of a level: beyond
// that it skips a part of the directories with the most nodes, and what is deeper. If it has skipped
// any, it returns a [SkippedError] that names them, together with the locks elsewhere.
//
// A lock is found if it was in use before the call and is in use throughout. FindLocks blocks until
// ZooKeeper has answered, ctx ends, or the connection is lost (ErrSuspended). With an error it
// returns the locks that it has found until then.
func (l *Locks) FindLocks(ctx context.Context, path string) ([]string, error) {
	paths, err := inspection.Find.One(ctx, l.at(path), struct{}{})
	if skipped, is := errors.AsType[inspection.Skipped](err); is {
		err = &SkippedError{skipped}
	}
	return paths, err
}

// Revoke asks the holder with the given node to release. node is a path as Grant.Node returns
// it, on any session and of any library. Revoke writes what Curator's Revoker writes; holders of
// this library are notified by Grant.Revoked, which also restores the data of WithData, and
// Curator's by makeRevocable. A missing node is no error.
//
// With grace 0 it returns then. Otherwise it blocks until the node is gone, deletes a node that
// still exists after grace, and reports that as broken. The holder has lost the lock then, and
// learns that within about two seconds (ErrNodeDeleted). Another contender may hold the lock
// before: only tokens keep the holder without the lock from doing harm. When ctx ends, the node
// stays.
//
// The errors are those of Multi and of ctx, ErrSuspended if there is no connection to ZooKeeper
// for the write, and ErrInvalid. With messages.Reason_OUTCOME_UNKNOWN the session has ended before
// ZooKeeper's answer: the holder was asked, or its node deleted, or not; Revoke again tells. With a
// lock server it is that error, too, if ctx ends or the connection to the server is lost while it waits.
func (l *Locks) Revoke(ctx context.Context, node string, grace time.Duration) (broken bool, err error) {
	return inspection.Revoke.One(ctx, l.at(node), grace)
}

// RevokeHolders is Locks.Revoke for all present holders of the lock, by this handle's rule: one
// for a mutex, perhaps several readers, all leases of a semaphore. It returns how many nodes it
// has deleted. It asks all holders before it waits, and waits for them together.
func (h *handle) RevokeHolders(ctx context.Context, grace time.Duration) (broken int, err error) {
	return inspection.RevokeHolders.One(ctx, h.target(), grace)
}

package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/inspection"
)

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
// looks at 100,000 directories and 16 levels of them: beyond that it skips a part of the
// directories with the most nodes, and what is deeper. If it has skipped any, it returns a
// [SkippedError] that names them, together with the locks elsewhere.
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

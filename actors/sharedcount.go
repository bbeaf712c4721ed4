package actors

import (
	"context"

	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// SharedCount is a number in a node of ZooKeeper, Curator's SharedCount: its data are four bytes,
// the highest first. With SharedPermits it is the number of permits of a semaphore. Its methods
// may be called from any goroutine; they block until ZooKeeper answers, ctx ends, or the
// connection is lost (ErrSuspended).
type SharedCount struct {
	at      *inspection.Target
	initial int
}

// Count is the value of a SharedCount at one moment. Version distinguishes it from the values
// before and after it; it is -1 while there is no node.
type Count struct {
	Value   int
	Version int32
}

// SharedCount returns the count at path. initial is its value while there is no node.
func (l *Locks) SharedCount(path string, initial int) *SharedCount {
	return &SharedCount{l.at(path), initial}
}

// Get asks ZooKeeper for the present value. It returns ErrInvalid for a path that is not
// acceptable, and for a node whose data are no count.
func (c *SharedCount) Get(ctx context.Context) (Count, error) {
	now, err := inspection.GetCount.One(ctx, c.at, c.initial)
	return Count(now), err
}

// Set writes the value, whatever it was. It creates a missing node, and the missing nodes above
// it. It does not overwrite a node whose data are no count: the error is that of Get. After
// messages.Reason_OUTCOME_UNKNOWN the value may have been written, or may be written later.
func (c *SharedCount) Set(ctx context.Context, value int) error {
	_, err := inspection.SetCount.One(ctx, c.at, value)
	return err
}

// TrySet writes the value if seen is still the present one. It returns false if another client
// has written since. Its errors are those of Set.
func (c *SharedCount) TrySet(ctx context.Context, seen Count, value int) (bool, error) {
	return inspection.TrySetCount.One(ctx, c.at, inspection.CountChange{Version: seen.Version, Value: value})
}

package actors

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// SharedCount is a number in a node of ZooKeeper, Curator's SharedCount: its data are four bytes,
// the highest first. With SharedPermits it is the number of permits of a semaphore. Its methods
// may be called from any goroutine; they block until ZooKeeper answers, ctx ends, or the
// connection is lost (ErrSuspended).
type SharedCount struct {
	at      *handle
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
	return askCount.one(ctx, c.at, c.initial)
}

func (h *handle) count(ctx context.Context, initial int) (Count, error) {
	if err := recipes.CheckCountPath(h.path); err != nil {
		return Count{}, err
	}
	view, err := h.manager.Bridge.GetData(ctx, h.path)
	switch {
	case err != nil:
		return Count{}, err
	case !view.Exists:
		return Count{initial, -1}, nil
	}
	value, err := recipes.ParseCount(h.path, view.Data)
	return Count{value, view.Stat.Version}, err
}

// Set writes the value, whatever it was. It creates a missing node, and the missing nodes above
// it. It does not overwrite a node whose data are no count: the error is that of Get. After
// messages.Reason_OUTCOME_UNKNOWN the value may have been written, or may be written later.
func (c *SharedCount) Set(ctx context.Context, value int) error {
	_, err := askSetCount.one(ctx, c.at, value)
	return err
}

func (h *handle) setCount(ctx context.Context, value int) (none, error) {
	data, err := h.countData(value)
	for done := false; err == nil && !done; {
		var now Count
		if now, err = h.count(ctx, 0); err == nil {
			done, err = h.writeCount(ctx, now.Version, data)
		}
	}
	return none{}, err
}

// TrySet writes the value if seen is still the present one. It returns false if another client
// has written since. Its errors are those of Set.
func (c *SharedCount) TrySet(ctx context.Context, seen Count, value int) (bool, error) {
	return askTrySetCount.one(ctx, c.at, countChange{seen.Version, value})
}

// countChange is a value for a count, if the count still has the version.
type countChange struct {
	Version int32
	Value   int
}

func (h *handle) trySetCount(ctx context.Context, change countChange) (bool, error) {
	data, err := h.countData(change.Value)
	if err != nil {
		return false, err
	}
	// The node may be another than the caller has seen, with the same version.
	if now, err := h.count(ctx, 0); err != nil || now.Version != max(change.Version, -1) {
		return false, err
	}
	return h.writeCount(ctx, change.Version, data)
}

// writeCount writes the data of a count that still has the version; below 0 it creates the node. It
// returns false if the count has another version.
func (h *handle) writeCount(ctx context.Context, version int32, data []byte) (bool, error) {
	if version < 0 {
		return h.createCount(ctx, data)
	}
	_, err := h.manager.Bridge.Multi(ctx, &zk.SetDataRequest{Path: h.path, Data: data, Version: version})
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

func (h *handle) countData(value int) ([]byte, error) {
	if err := recipes.CheckCountPath(h.path); err != nil {
		return nil, err
	}
	if value < math.MinInt32 || value > math.MaxInt32 {
		return nil, check.Invalid(fmt.Sprintf("count %d: it must be from %d to %d", value, math.MinInt32, math.MaxInt32))
	}
	return recipes.CountData(value), nil
}

// createCount creates the node. It returns false if the node exists.
func (h *handle) createCount(ctx context.Context, data []byte) (bool, error) {
	directory, _ := zkpath.Split(h.path)
	for {
		_, err := h.manager.Bridge.MultiWithin(ctx, directory, &zk.CreateRequest{Path: h.path, Data: data})
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return false, nil
		case !errors.Is(err, zk.ErrNoNode): // otherwise another client has just deleted the directory
			return err == nil, err
		}
	}
}

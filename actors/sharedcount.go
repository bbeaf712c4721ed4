package actors

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// SharedCount is a number in a node of ZooKeeper, Curator's SharedCount: its data are four bytes,
// the highest first. With SharedPermits it is the number of permits of a semaphore. Its methods
// may be called from any goroutine; they block until ZooKeeper answers, ctx ends, or the
// connection is lost (ErrSuspended).
type SharedCount struct {
	bridge  *zkbridge.Bridge
	path    string
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
	return &SharedCount{l.bridge, path, initial}
}

// Get asks ZooKeeper for the present value. It returns ErrInvalid for a path that is not
// acceptable, and for a node whose data are no count.
func (c *SharedCount) Get(ctx context.Context) (Count, error) {
	if err := recipes.CheckCountPath(c.path); err != nil {
		return Count{}, err
	}
	view, err := c.bridge.GetData(ctx, c.path)
	switch {
	case err != nil:
		return Count{}, err
	case !view.Exists:
		return Count{c.initial, -1}, nil
	}
	value, err := recipes.ParseCount(c.path, view.Data)
	return Count{value, view.Stat.Version}, err
}

// Set writes the value, whatever it was. It creates a missing node, and the missing nodes above
// it. After messages.Reason_OUTCOME_UNKNOWN the value may have been written, or may be written
// later.
func (c *SharedCount) Set(ctx context.Context, value int) error {
	data, err := c.data(value)
	for err == nil {
		_, err = c.bridge.Multi(ctx, &zk.SetDataRequest{Path: c.path, Data: data, Version: -1})
		if !errors.Is(err, zk.ErrNoNode) {
			break
		}
		var created bool
		if created, err = c.create(ctx, data); created {
			break
		}
	}
	return err
}

// TrySet writes the value if seen is still the present one. It returns false if another client
// has written since. Its errors are those of Set.
func (c *SharedCount) TrySet(ctx context.Context, seen Count, value int) (bool, error) {
	data, err := c.data(value)
	if err != nil {
		return false, err
	}
	if seen.Version < 0 {
		return c.create(ctx, data)
	}
	_, err = c.bridge.Multi(ctx, &zk.SetDataRequest{Path: c.path, Data: data, Version: seen.Version})
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

func (c *SharedCount) data(value int) ([]byte, error) {
	if err := recipes.CheckCountPath(c.path); err != nil {
		return nil, err
	}
	if value < math.MinInt32 || value > math.MaxInt32 {
		return nil, check.Invalid(fmt.Sprintf("count %d: it must be from %d to %d", value, math.MinInt32, math.MaxInt32))
	}
	return recipes.CountData(value), nil
}

// create creates the node. It returns false if the node exists.
func (c *SharedCount) create(ctx context.Context, data []byte) (bool, error) {
	directory, _ := zkpath.Split(c.path)
	for {
		_, err := c.bridge.MultiWithin(ctx, directory, &zk.CreateRequest{Path: c.path, Data: data})
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return false, nil
		case !errors.Is(err, zk.ErrNoNode): // otherwise another client has just deleted the directory
			return err == nil, err
		}
	}
}

package inspection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

func (t *Target) remaining(ctx context.Context, _ struct{}) (int, error) {
	permits, err := t.permits(ctx)
	if err != nil {
		return 0, err
	}
	leases, err := t.Manager.Bridge.GetNode(ctx, t.Path+queue.LeasesSuffix+"/any") // for the names beside that node
	if err != nil {
		return 0, err
	}
	return max(0, permits-len(leases.Names)), nil
}

// permits returns the present number of permits.
func (t *Target) permits(ctx context.Context) (int, error) {
	if t.Recipe.CountPath == "" {
		return t.Recipe.Permits, nil
	}
	now, err := (&Target{Manager: t.Manager, Path: t.Recipe.CountPath}).count(ctx, t.Recipe.Permits)
	return now.Value, err
}

// CountValue is a SharedCount at one moment: see actors.Count.
type CountValue struct {
	Value   int
	Version int32
}

func (t *Target) count(ctx context.Context, initial int) (CountValue, error) {
	if err := check.CountPath(t.Path); err != nil {
		return CountValue{}, err
	}
	view, err := t.Manager.Bridge.GetData(ctx, t.Path)
	switch {
	case err != nil:
		return CountValue{}, err
	case !view.Exists:
		return CountValue{initial, -1}, nil
	}
	value, err := recipes.ParseCount(t.Path, view.Data)
	return CountValue{value, view.Stat.Version}, err
}

func (t *Target) setCount(ctx context.Context, value int) (struct{}, error) {
	data, err := t.countData(value)
	for done := false; err == nil && !done; {
		var now CountValue
		if now, err = t.count(ctx, 0); err == nil {
			done, err = t.writeCount(ctx, now.Version, data)
		}
	}
	return struct{}{}, err
}

// CountChange is a value for a SharedCount, if that still has the version.
type CountChange struct {
	Version int32
	Value   int
}

func (t *Target) trySetCount(ctx context.Context, change CountChange) (bool, error) {
	data, err := t.countData(change.Value)
	if err != nil {
		return false, err
	}
	// The node may be another than the caller has seen, with the same version.
	if now, err := t.count(ctx, 0); err != nil || now.Version != max(change.Version, -1) {
		return false, err
	}
	return t.writeCount(ctx, change.Version, data)
}

// writeCount writes the data of a count that still has the version; below 0 it creates the node. It
// returns false if the count has another version.
func (t *Target) writeCount(ctx context.Context, version int32, data []byte) (bool, error) {
	if version < 0 {
		return t.createCount(ctx, data)
	}
	_, err := t.Manager.Bridge.Multi(ctx, &zk.SetDataRequest{Path: t.Path, Data: data, Version: version})
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

func (t *Target) countData(value int) ([]byte, error) {
	if err := check.CountPath(t.Path); err != nil {
		return nil, err
	}
	if value < math.MinInt32 || value > math.MaxInt32 {
		return nil, check.Invalid(fmt.Sprintf("count %d: it must be from %d to %d", value, math.MinInt32, math.MaxInt32))
	}
	return recipes.CountData(value), nil
}

// createCount creates the node. It returns false if the node exists. A node that is named as a contender would
// block the lock at its directory for ever, because it goes with no session.
func (t *Target) createCount(ctx context.Context, data []byte) (bool, error) {
	for name := range strings.SplitSeq(t.Path, "/") {
		if _, _, contends := queue.Parse(name); contends {
			return false, check.Invalid(fmt.Sprintf("shared count %s: %q is the name of a contender's node, and would block a lock", t.Path, name))
		}
	}
	directory, _ := zkpath.Split(t.Path)
	for {
		_, err := t.Manager.Bridge.MultiWithin(ctx, directory, &zk.CreateRequest{Path: t.Path, Data: data})
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return false, nil
		case !errors.Is(err, zk.ErrNoNode): // otherwise another client has just deleted the directory
			return err == nil, err
		}
	}
}

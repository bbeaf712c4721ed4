package actors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// SharedCount is a number in a node of ZooKeeper, Curator's SharedCount: its data are
// four bytes, the highest first. With SharedPermits it is how many permits a semaphore
// has. Its methods may be called from any goroutine; they block until ZooKeeper answers,
// ctx ends, or the connection is lost (ErrSuspended).
type SharedCount struct {
	manager *manager
	path    string
	initial int
}

// Count is the value that a SharedCount had. Version tells it from others that were
// there before or after it; it is -1 while there is no node.
type Count struct {
	Value   int
	Version int32
}

// SharedCount gives the count at path. initial is its value while there is no node.
func (l *Locks) SharedCount(path string, initial int) *SharedCount {
	return &SharedCount{l.manager, path, initial}
}

// Get asks ZooKeeper for the present value. It returns ErrInvalid for a path that is not
// acceptable, and for a node with other data than a count.
func (c *SharedCount) Get(ctx context.Context) (Count, error) {
	if err := checkCountPath(c.path); err != nil {
		return Count{}, err
	}
	view, err := c.manager.zk.Read(ctx, c.path)
	switch {
	case err != nil:
		return Count{}, err
	case !view.Exists:
		return Count{c.initial, -1}, nil
	}
	value, err := readCount(c.path, view.Data)
	return Count{value, view.Stat.Version}, err
}

// Set writes the value, whatever it was. The node is made if it is missing, and so are
// those above it. messages.Reason_OUTCOME_UNKNOWN tells that the value may have been
// written, or may yet be.
func (c *SharedCount) Set(ctx context.Context, value int) error {
	data, err := c.data(value)
	for err == nil {
		var done *messages.Transacted
		done, err = c.transact(ctx, "", []*messages.Op{{Kind: messages.Op_SET, Path: c.path, Data: data}})
		if err != nil || done.Outcome == messages.Transacted_DONE {
			break
		}
		var made bool
		if made, err = c.make(ctx, data); made {
			break
		}
	}
	return err
}

// TrySet writes the value unless somebody has done so since seen was the present one:
// then it gives false. Errors are as with Set.
func (c *SharedCount) TrySet(ctx context.Context, seen Count, value int) (bool, error) {
	data, err := c.data(value)
	if err != nil {
		return false, err
	}
	if seen.Version < 0 {
		return c.make(ctx, data)
	}
	_, err = c.manager.zk.Multi(ctx, &zk.SetDataRequest{Path: c.path, Data: data, Version: seen.Version})
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

func (c *SharedCount) data(value int) ([]byte, error) {
	if err := checkCountPath(c.path); err != nil {
		return nil, err
	}
	if value < math.MinInt32 || value > math.MaxInt32 {
		return nil, invalid(fmt.Sprintf("count %d: it must be from %d to %d", value, math.MinInt32, math.MaxInt32))
	}
	return countData(value), nil
}

// make makes the node; false if there is one.
func (c *SharedCount) make(ctx context.Context, data []byte) (bool, error) {
	for depth := 1; ; depth++ {
		ops, within := makeNode(c.path, data, depth), ""
		if depth > len(ops) {
			within = "/" // all that is above the node is in ops, but for a chroot
		}
		done, err := c.transact(ctx, within, ops)
		switch {
		case err != nil:
			return false, err
		case done.Outcome == messages.Transacted_DONE:
			return true, nil
		case done.Outcome == messages.Transacted_NODE_EXISTS && int(done.Op) == len(ops)-1:
			return false, nil
		case done.Outcome == messages.Transacted_NODE_EXISTS: // it was made just now
			depth = 0
		}
	}
}

func (c *SharedCount) transact(ctx context.Context, within string, ops []*messages.Op) (*messages.Transacted, error) {
	return guard(ctx, c.manager.zk, func(ctx context.Context) (*messages.Transacted, error) {
		t := &messages.Transact{Epoch: c.manager.zk.Session().Epoch, Directory: within, Ops: ops}
		return c.manager.bridge.Transact(t).Wait(ctx)
	})
}

// makeNode makes a node and those above it, as many in all as depth says at most.
func makeNode(path string, data []byte, depth int) []*messages.Op {
	ops := []*messages.Op{{Kind: messages.Op_CREATE, Path: path, Data: data}}
	for i := strings.LastIndexByte(path, '/'); i > 0 && len(ops) < depth; i = strings.LastIndexByte(path[:i], '/') {
		ops = append([]*messages.Op{{Kind: messages.Op_CREATE, Path: path[:i]}}, ops...)
	}
	return ops
}

func countData(value int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(value))) }

func readCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, invalid(fmt.Sprintf("count %s: its data are %d bytes, and must be 4", path, len(data)))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}

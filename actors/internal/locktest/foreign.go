package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// CuratorID begins the name of a contender of Curator's.
const CuratorID = "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab"

// ForeignPrefixes are the prefixes of other libraries' contenders.
var ForeignPrefixes = map[string]string{
	"Curator":                    "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lock-",
	"go-zookeeper":               "_c_0123456789abcdef0123456789abcdef-lock-",
	"kazoo":                      "0123456789abcdef0123456789abcdef__lock__",
	"zk-recipes":                 "x-72057594037927936-",
	"kazoo with Curator's names": "0123456789abcdef0123456789abcdef-lock-",
	"kazoo reader":               "0123456789abcdef0123456789abcdef__rlock__",
	"lease":                      "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lease-",
}

// ForeignNode is a contender of another library, made by a plain client.
type ForeignNode struct {
	t    testing.TB
	conn *zk.Conn
	Path string
}

// ForeignNodeAt returns the foreign contender at a path, which a client has created.
func (b *Fixture) ForeignNodeAt(conn *zk.Conn, path string) *ForeignNode {
	return &ForeignNode{b, conn, path}
}

// makeDirectory creates a container where the server knows containers.
func (b *Fixture) makeDirectory(conn *zk.Conn, path string) (err error) {
	if b.KnowsContainers() {
		_, err = conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	} else {
		_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	}
	return err
}

// ForeignNode creates a node with the prefix in the lock's directory.
func (b *Fixture) ForeignNode(conn *zk.Conn, prefix string) *ForeignNode {
	b.Helper()
	var path string
	var err error
	for range 100 { // an empty container may go at any moment
		err = b.makeDirectory(conn, b.LockPath)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			b.Fatal(err)
		}
		path, err = conn.Create(b.LockPath+"/"+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNoNode) {
			break
		}
	}
	Must(b, err)
	return b.ForeignNodeAt(conn, path)
}

// Leave deletes the node.
func (r *ForeignNode) Leave() {
	r.t.Helper()
	Must(r.t, r.conn.Delete(r.Path, -1))
}

// CuratorSemaphore sends the requests of Curator's InterProcessSemaphoreV2 by a plain client.
type CuratorSemaphore struct {
	b    *Fixture
	Conn *zk.Conn
	path string
	max  int
	// OnLease, if not nil, is called when a lease is taken and the lock is free again.
	OnLease func(leases int)
}

// CuratorSemaphore returns the semaphore at the lock's path, on a connection of its own.
func (b *Fixture) CuratorSemaphore(max int) *CuratorSemaphore {
	return &CuratorSemaphore{b: b, Conn: b.Client(b), path: b.LockPath, max: max}
}

// Acquire takes n leases one after the other, and deletes them if it fails.
func (c *CuratorSemaphore) Acquire(ctx context.Context, n int) (leases []string, err error) {
	for len(leases) < n {
		lease, err := c.acquireOne(ctx)
		if err != nil {
			c.Release(leases...)
			return nil, err
		}
		leases = append(leases, lease)
		if c.OnLease != nil {
			c.OnLease(len(leases))
		}
	}
	return leases, nil
}

func (c *CuratorSemaphore) acquireOne(ctx context.Context) (lease string, err error) {
	lock := c.Create("/locks", "-lock-")
	defer c.Release(lock)
	if err := c.waitFirst(ctx, lock); err != nil {
		return "", err
	}
	lease = c.Create("/leases", "-lease-")
	for {
		children, _, err := c.Conn.Children(c.path + "/leases")
		Must(c.b, err)
		if len(children) <= c.max {
			return lease, nil
		}
		if err := pollPause(ctx); err != nil {
			c.Release(lease)
			return "", err
		}
	}
}

// pollPause waits between two reads. Curator sets a watch; but an early first watch of a connection
// of go-zookeeper's causes a data race there.
func pollPause(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitFirst waits until the lock is the first of its directory.
func (c *CuratorSemaphore) waitFirst(ctx context.Context, lock string) error {
	for {
		children, _, err := c.Conn.Children(c.path + "/locks")
		Must(c.b, err)
		slices.SortFunc(children, BySequence)
		if strings.HasSuffix(lock, "/"+children[0]) {
			return nil
		}
		if err := pollPause(ctx); err != nil {
			return err
		}
	}
}

var lastUUID atomic.Int64

// Create creates a contender or a lease in one of the directories.
func (c *CuratorSemaphore) Create(directory, marker string) string {
	for {
		node, err := c.Conn.Create(fmt.Sprintf("%s%s/_c_0b8e6a4c-9f34-4a8e-8f7e-%012x%s", c.path, directory, lastUUID.Add(1), marker),
			nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNoNode) {
			Must(c.b, err)
			return node
		}
		for _, path := range []string{c.path, c.path + directory} {
			if err := c.b.makeDirectory(c.Conn, path); err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) {
				c.b.Fatal(err)
			}
		}
	}
}

// Release deletes nodes.
func (c *CuratorSemaphore) Release(nodes ...string) {
	for _, node := range nodes {
		if err := c.Conn.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			c.b.Error(err)
		}
	}
}

package actors_test

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

const curatorID = "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab"

// foreignPrefixes are the prefixes of other libraries' contenders.
var foreignPrefixes = map[string]string{
	"Curator":                    "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lock-",
	"go-zookeeper":               "_c_0123456789abcdef0123456789abcdef-lock-",
	"kazoo":                      "0123456789abcdef0123456789abcdef__lock__",
	"zk-recipes":                 "x-72057594037927936-",
	"kazoo with Curator's names": "0123456789abcdef0123456789abcdef-lock-",
	"kazoo reader":               "0123456789abcdef0123456789abcdef__rlock__",
	"lease":                      "_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lease-",
}

// foreignNode is a contender of another library, made by a plain client.
type foreignNode struct {
	t    testing.TB
	conn *zk.Conn
	path string
}

// foreignNode creates a node with the prefix in the lock's directory.
func (b *testLock) foreignNode(conn *zk.Conn, prefix string) *foreignNode {
	b.Helper()
	var path string
	var err error
	for range 100 { // an empty container may go at any moment
		_, err = conn.CreateContainer(b.path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			b.Fatal(err)
		}
		path, err = conn.Create(b.path+"/"+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNoNode) {
			break
		}
	}
	must(b, err)
	return &foreignNode{b, conn, path}
}

func (r *foreignNode) leave() {
	r.t.Helper()
	must(r.t, r.conn.Delete(r.path, -1))
}

// curatorSemaphore sends the requests of Curator's InterProcessSemaphoreV2 by a plain client.
type curatorSemaphore struct {
	b    *testLock
	conn *zk.Conn
	path string
	max  int
	// onLease, if not nil, is called when a lease is taken and the lock is free again.
	onLease func(leases int)
}

func (b *testLock) curatorSemaphore(max int) *curatorSemaphore {
	return &curatorSemaphore{b: b, conn: b.Client(b), path: b.path, max: max}
}

// acquire takes n leases one after the other, and deletes them if it fails.
func (c *curatorSemaphore) acquire(ctx context.Context, n int) (leases []string, err error) {
	for len(leases) < n {
		lease, err := c.acquireOne(ctx)
		if err != nil {
			c.release(leases...)
			return nil, err
		}
		leases = append(leases, lease)
		if c.onLease != nil {
			c.onLease(len(leases))
		}
	}
	return leases, nil
}

func (c *curatorSemaphore) acquireOne(ctx context.Context) (lease string, err error) {
	lock := c.create("/locks", "-lock-")
	defer c.release(lock)
	if err := c.waitFirst(ctx, lock); err != nil {
		return "", err
	}
	lease = c.create("/leases", "-lease-")
	for {
		children, _, err := c.conn.Children(c.path + "/leases")
		must(c.b, err)
		if len(children) <= c.max {
			return lease, nil
		}
		if err := pollPause(ctx); err != nil {
			c.release(lease)
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
func (c *curatorSemaphore) waitFirst(ctx context.Context, lock string) error {
	for {
		children, _, err := c.conn.Children(c.path + "/locks")
		must(c.b, err)
		slices.SortFunc(children, bySequence)
		if strings.HasSuffix(lock, "/"+children[0]) {
			return nil
		}
		if err := pollPause(ctx); err != nil {
			return err
		}
	}
}

var lastUUID atomic.Int64

func (c *curatorSemaphore) create(directory, marker string) string {
	for {
		node, err := c.conn.Create(fmt.Sprintf("%s%s/_c_0b8e6a4c-9f34-4a8e-8f7e-%012x%s", c.path, directory, lastUUID.Add(1), marker),
			nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNoNode) {
			must(c.b, err)
			return node
		}
		for _, path := range []string{c.path, c.path + directory} {
			if _, err := c.conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) {
				c.b.Fatal(err)
			}
		}
	}
}

func (c *curatorSemaphore) release(nodes ...string) {
	for _, node := range nodes {
		if err := c.conn.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			c.b.Error(err)
		}
	}
}

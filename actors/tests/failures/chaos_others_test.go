//go:build unix

package failures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// The ids of the clients of other libraries in the resource server, at the first path. At the next one
// each is one less.
const (
	curatorID = -1
	kazooID   = -11
)

// contendOthers has clients of Curator and kazoo use the locks as the processes do, until the returned
// function is called.
func (c *chaos) contendOthers() (stop func()) {
	curator := interop.Curator(c, c.Addr(), interop.SessionTimeout(time.Minute))
	kazoo := interop.Kazoo(c, c.Addr(), interop.SessionTimeout(time.Minute))
	stopCurator := c.contend(curatorID, curator.Peer, curator.Mutex)
	stopKazoo := c.contend(kazooID, kazoo.Peer, kazoo.CuratorLock)
	return func() {
		stopCurator()
		stopKazoo()
		granted, ours := c.resources.granted(), 0
		for id, n := range granted {
			if id > 0 { // a process
				ours += n
			}
		}
		c.Logf("%d grants of processes", ours)
		for _, id := range []int64{curatorID, kazooID} {
			n := 0
			for i := range c.paths {
				n += granted[id-int64(i)]
			}
			if c.Logf("%d grants of %d", n, id); n == 0 {
				c.Errorf("no grant of %d", id)
			}
		}
	}
}

// contend has a client of another library use the locks as the processes do, until the returned function
// is called. The client is not cut off, so that it holds until it releases.
func (c *chaos) contend(id int64, peer *interop.Peer, mutex func(path string) *interop.Lock) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var failures atomic.Int32
	conn := c.Client(c)
	for i, path := range c.paths {
		resources, err := connectResources(c.resources.addr())
		locktest.Must(c, err)
		all.Go(func() {
			lock := mutex(path)
			for ctx.Err() == nil {
				if err := useOther(lock, conn, resources, path, id-int64(i)); err != nil {
					failures.Add(1)
					c.Logf("client %d: %v", id, err)
					removeNodesOf(c, conn, path, peer.SessionID()) // which it may hold until its session ends
					lock = mutex(path)
				}
				<-time.After(rand.N(300 * time.Millisecond)) // the others shall have most of the locks
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
		if n := failures.Load(); n > 0 && len(c.Members()) == 0 {
			c.Errorf("client %d has failed %d times, though its server was there", id, n)
		}
	}
}

// useOther acquires the lock, uses it, and releases. The czxid of its node is a token.
func useOther(lock *interop.Lock, conn *zk.Conn, resources *resourceClient, path string, id int64) error {
	resources.call("call", path, actors.Token{}, id)
	if held, err := lock.Acquire(zktest.TimeLimit); err != nil || !held {
		return fmt.Errorf("acquire: %t, %w", held, err)
	}
	node, err := lock.Node()
	if err != nil {
		return err
	}
	stat := &zk.Stat{}
	if err := retried(func() (err error) {
		if err = catchUp(conn); err == nil {
			_, stat, err = conn.Get(node)
		}
		return err
	}); err != nil {
		return fmt.Errorf("the node of the holder, %s: %w", node, err)
	}
	token := actors.Token{Czxid: stat.Czxid}
	resources.call("lock", path, token, 0)
	resources.use(path, token, func() bool { return true })
	resources.call("begin", path, token, 0)
	err = lock.Release()
	if err != nil {
		if failed := retried(func() error { return conn.Delete(node, -1) }); failed != nil && !errors.Is(failed, zk.ErrNoNode) {
			return fmt.Errorf("delete the node of the holder, %s: %w", node, failed)
		}
		err = fmt.Errorf("release: %w", err)
	}
	resources.call("unlock", path, token, 0)
	return err
}

// catchUp has the connection's server catch up with the others, by a transaction that changes nothing: a leader that is
// cut off answers a sync at once.
func catchUp(conn *zk.Conn) error {
	_, err := conn.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
	return err
}

// retried calls f again while servers restart.
func retried(f func() error) error {
	for over := time.Now().Add(zktest.TimeLimit); ; <-time.After(50 * time.Millisecond) {
		err := f()
		if lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer); !lost || time.Now().After(over) {
			return err
		}
	}
}

// removeNodesOf deletes the nodes of a session in a directory.
func removeNodesOf(t testing.TB, conn *zk.Conn, directory string, session int64) {
	t.Helper()
	var names []string
	err := retried(func() (err error) {
		if err = catchUp(conn); err == nil { // otherwise it may hold for ever by a node that is not seen
			names, _, err = conn.Children(directory)
		}
		return err
	})
	for _, name := range names {
		path := directory + "/" + name
		var exists bool
		var stat *zk.Stat
		if e := retried(func() (err error) { exists, stat, err = conn.Exists(path); return err }); e != nil {
			t.Errorf("%s: %v", path, e)
		} else if exists && stat.EphemeralOwner == session {
			if e := retried(func() error { return conn.Delete(path, -1) }); e != nil && !errors.Is(e, zk.ErrNoNode) {
				t.Errorf("delete %s: %v", path, e)
			}
		}
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("%s: %v", directory, err)
	}
}

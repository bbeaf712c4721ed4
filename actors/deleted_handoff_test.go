package actors_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An operator deletes all nodes of a lock that a process hands on between its own waiters. The
// process notices that within seconds, though no holder holds for long.
func TestNodesDeletedDuringHandOffs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		directory bool // is deleted too
	}{{"nodes", false}, {"nodes and directory", true}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				ours := v.mutex()
				theirs := v.mutex()
				const deletion = 1500 * time.Millisecond // the second holds
				late := time.Now().Add(deletion + noticeLimit)
				l := newLedger(v) // of the grants from late on
				use := func(mu *actors.Mutex, hold time.Duration) {
					g, err := mu.Lock(within(v))
					if err != nil {
						v.Errorf("lock: %v", err)
						return
					}
					time.AfterFunc(time.Until(late), func() {
						if g.Err() == nil {
							l.enter("", g, whole(v.path))
						}
					})
					<-time.After(hold)
					begun := time.Now()
					err = g.Unlock(within(v))
					gone := l.isDeleted(g.Node())
					switch {
					case err == nil && gone && !begun.Before(late):
						v.Errorf("unlock %v after the node was deleted: no error", begun.Sub(late)+noticeLimit)
					case err != nil && !(gone && errors.Is(err, actors.ErrNodeDeleted)):
						v.Errorf("unlock of %s, which was deleted %v: %v", g.Node(), gone, err)
					}
				}
				var all sync.WaitGroup
				for range 12 {
					all.Go(func() { use(ours, 900*time.Millisecond) })
				}
				<-time.After(deletion)
				var deleted []string
				for _, node := range v.nodes() {
					deleted = append(deleted, "/lock/"+node)
				}
				l.delete(deleted...)
				if c.directory {
					deleted = append(deleted, "/lock")
				}
				v.remove(deleted...)
				if n := len(l.deleted); n != 11 {
					v.Errorf("%d nodes were deleted, want 11", n)
				}
				use(theirs, 15*time.Second)
				all.Wait()
				if l.count(v.path) < 2 {
					v.Error("the processes did not hold in turn")
				}
				unlock(v, lock(v, ours))
				unlock(v, lock(v, theirs))
				v.clean()
			})
		})
	}
}

// Two readers of a process wait behind a writer of another. The node of one reader is deleted, or
// the nodes of both, and then the writer leaves. Both readers are granted, neither by a deleted
// node.
func TestReadersDeletedBehindWriter(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(b *testLock, conn *zk.Conn, readers []any, writer *foreignNode)
	}{
		{"then the writer leaves", func(b *testLock, conn *zk.Conn, readers []any, writer *foreignNode) {
			_, err := conn.Multi(readers...)
			must(b, err)
			writer.leave()
		}},
		{"one of them, then the writer leaves", func(b *testLock, conn *zk.Conn, readers []any, writer *foreignNode) {
			_, err := conn.Multi(readers[1])
			must(b, err)
			writer.leave()
		}},
		{"with the writer", func(b *testLock, conn *zk.Conn, readers []any, writer *foreignNode) {
			_, err := conn.Multi(append(readers, &zk.DeleteRequest{Path: writer.path, Version: -1})...)
			must(b, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn, rw := b.Client(b), b.rw()
				writer, before := b.foreignNode(conn, curatorID+"-__WRIT__"), b.watches()
				fs := []*actors.Future[*actors.Grant]{rw.Read().Acquire(within(b)), rw.Read().Acquire(within(b))}
				b.waitNodes(3)
				zktest.Eventually(b, timeLimit, func() bool { return b.watches() > before }, "the readers watch")
				var deletes []any
				nodes := b.nodes()
				slices.SortFunc(nodes, bySequence)
				for _, node := range nodes {
					if path := b.path + "/" + node; path != writer.path {
						deletes = append(deletes, &zk.DeleteRequest{Path: path, Version: -1})
					}
				}
				pending(b, fs...)
				c.leave(b, conn, deletes, writer)
				for _, f := range fs {
					g := result(b, f)
					must(b, g.Verify(within(b)))
					unlock(b, g)
				}
			})
		})
	}
}

// The node of the last reader is deleted and a second writer queues before the first leaves:
// the other reader holds, and the last reader waits for the second writer with a new node.
func TestReaderDeletedBetweenWriters(t *testing.T) {
	each(t, func(b *testLock) {
		conn, rw := b.Client(b), b.rw()
		first, before := b.foreignNode(conn, curatorID+"-__WRIT__"), b.watches()
		f := rw.Read().Acquire(within(b))
		b.waitNodes(2)
		others := b.nodes()
		last := rw.Read().Acquire(within(b))
		b.waitNodes(3)
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() > before }, "the readers watch")
		deleted := slices.DeleteFunc(b.nodes(), func(node string) bool { return slices.Contains(others, node) })[0]
		results, err := conn.Multi(&zk.DeleteRequest{Path: b.path + "/" + deleted, Version: -1}, &zk.CreateRequest{
			Path: b.path + "/" + strings.Replace(curatorID, "0", "1", 1) + "-__WRIT__",
			Acl:  zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
		must(b, err)
		second := &foreignNode{b, conn, results[1].String}
		first.leave()
		g := result(b, f)
		zktest.Eventually(b, timeLimit, func() bool { return len(b.nodes()) == 3 || isClosed(last.Done()) }, "the last reader queues again")
		pending(b, last)
		unlock(b, g)
		pending(b, last)
		second.leave()
		unlock(b, result(b, last))
	})
}

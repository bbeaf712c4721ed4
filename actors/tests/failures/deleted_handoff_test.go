package failures

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
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
			locktest.Bubble(t, func(v *locktest.Virtual) {
				ours := v.Mutex()
				theirs := v.Mutex()
				const deletion = 1500 * time.Millisecond // the second holds
				late := time.Now().Add(deletion + locktest.NoticeLimit)
				l := locktest.NewLedger(v) // of the grants from late on
				use := func(mu *actors.Mutex, hold time.Duration) {
					g, err := mu.Lock(locktest.Within(v))
					if err != nil {
						v.Errorf("lock: %v", err)
						return
					}
					time.AfterFunc(time.Until(late), func() {
						if g.Err() == nil {
							l.Enter("", g, locktest.Whole(v.LockPath))
						}
					})
					<-time.After(hold)
					begun := time.Now()
					err = g.Unlock(locktest.Within(v))
					gone := l.IsDeleted(g.Node())
					switch {
					case err == nil && gone && !begun.Before(late):
						v.Errorf("unlock %v after the node was deleted: no error", begun.Sub(late)+locktest.NoticeLimit)
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
				for _, node := range v.LockNodes() {
					deleted = append(deleted, "/lock/"+node)
				}
				l.Delete(deleted...)
				if c.directory {
					deleted = append(deleted, "/lock")
				}
				v.Remove(deleted...)
				if n := len(l.Deleted); n != 11 {
					v.Errorf("%d nodes were deleted, want 11", n)
				}
				use(theirs, 15*time.Second)
				all.Wait()
				if l.Count(v.LockPath) < 2 {
					v.Error("the processes did not hold in turn")
				}
				locktest.Unlock(v, locktest.Lock(v, ours))
				locktest.Unlock(v, locktest.Lock(v, theirs))
				v.Clean()
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
		leave func(b *locktest.Fixture, conn *zk.Conn, readers []any, writer *locktest.ForeignNode)
	}{
		{"then the writer leaves", func(b *locktest.Fixture, conn *zk.Conn, readers []any, writer *locktest.ForeignNode) {
			_, err := conn.Multi(readers...)
			locktest.Must(b, err)
			writer.Leave()
		}},
		{"one of them, then the writer leaves", func(b *locktest.Fixture, conn *zk.Conn, readers []any, writer *locktest.ForeignNode) {
			_, err := conn.Multi(readers[1])
			locktest.Must(b, err)
			writer.Leave()
		}},
		{"with the writer", func(b *locktest.Fixture, conn *zk.Conn, readers []any, writer *locktest.ForeignNode) {
			_, err := conn.Multi(append(readers, &zk.DeleteRequest{Path: writer.Path, Version: -1})...)
			locktest.Must(b, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn, rw := b.Client(b), b.RWMutex()
				writer, before := b.ForeignNode(conn, locktest.CuratorID+"-__WRIT__"), b.LockWatches()
				fs := []*actors.Future[*actors.Grant]{rw.Read().Acquire(locktest.Within(b)), rw.Read().Acquire(locktest.Within(b))}
				b.WaitNodes(3)
				zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() > before }, "the readers watch")
				var deletes []any
				nodes := b.LockNodes()
				slices.SortFunc(nodes, locktest.BySequence)
				for _, node := range nodes {
					if path := b.LockPath + "/" + node; path != writer.Path {
						deletes = append(deletes, &zk.DeleteRequest{Path: path, Version: -1})
					}
				}
				locktest.Pending(b, fs...)
				c.leave(b, conn, deletes, writer)
				for _, f := range fs {
					g := locktest.Result(b, f)
					locktest.Must(b, g.Verify(locktest.Within(b)))
					locktest.Unlock(b, g)
				}
			})
		})
	}
}

// The node of the last reader is deleted and a second writer queues before the first leaves:
// the other reader holds, and the last reader waits for the second writer with a new node.
func TestReaderDeletedBetweenWriters(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, rw := b.Client(b), b.RWMutex()
		first, before := b.ForeignNode(conn, locktest.CuratorID+"-__WRIT__"), b.LockWatches()
		f := rw.Read().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		others := b.LockNodes()
		last := rw.Read().Acquire(locktest.Within(b))
		b.WaitNodes(3)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() > before }, "the readers watch")
		deleted := slices.DeleteFunc(b.LockNodes(), func(node string) bool { return slices.Contains(others, node) })[0]
		results, err := conn.Multi(&zk.DeleteRequest{Path: b.LockPath + "/" + deleted, Version: -1}, &zk.CreateRequest{
			Path: b.LockPath + "/" + strings.Replace(locktest.CuratorID, "0", "1", 1) + "-__WRIT__",
			Acl:  zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
		locktest.Must(b, err)
		second := b.ForeignNodeAt(conn, results[1].String)
		first.Leave()
		g := locktest.Result(b, f)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.LockNodes()) == 3 || locktest.IsClosed(last.Done()) }, "the last reader queues again")
		locktest.Pending(b, last)
		locktest.Unlock(b, g)
		locktest.Pending(b, last)
		second.Leave()
		locktest.Unlock(b, locktest.Result(b, last))
	})
}

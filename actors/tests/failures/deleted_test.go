package failures

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// removeDirectory deletes the lock's directory, unless ZooKeeper does, once it has no children.
func removeDirectory(b *locktest.Fixture, conn *zk.Conn) {
	b.Helper()
	b.WaitNodes(0)
	if err := conn.Delete(b.LockPath, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		b.Fatal(err)
	}
}

// ZooKeeper deletes the directory of an idle lock, as a container, and sequence numbers begin at 0
// in the next directory. No contender holds because of numbers that its process remembers.
func TestNumbersBeginAgain(t *testing.T) {
	for name, before := range map[string]int{"fewer than before": 1, "as many as before": 3, "more than before": 5} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				mus := []*actors.Mutex{b.Mutex(), b.Mutex()}
				last := actors.Token{}
				for range 3 {
					g := locktest.Lock(b, mus[1])
					last = g.Token()
					locktest.Unlock(b, g)
				}
				removeDirectory(b, conn)
				var ahead []*locktest.ForeignNode
				for range before {
					ahead = append(ahead, b.ForeignNode(conn, locktest.ForeignPrefixes["go-zookeeper"]))
				}
				f := mus[1].Acquire(locktest.Within(b))
				b.WaitNodes(before + 1)
				for _, r := range ahead {
					locktest.Pending(b, f)
					r.Leave()
				}
				g := locktest.Result(b, f)
				locktest.ExpectIncreasing(b, last, g.Token())
				waiting := mus[0].Acquire(locktest.Within(b))
				b.WaitNodes(2)
				locktest.Pending(b, waiting)
				locktest.Unlock(b, g)
				locktest.Unlock(b, locktest.Result(b, waiting))
			})
		})
	}
}

// The node of a waiter is deleted, and all other nodes with the directory.
func TestDirectoryDeletedWhileWaiting(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		one, two := b.Mutex(), b.Mutex()
		first := b.ForeignNode(conn, locktest.ForeignPrefixes["go-zookeeper"])
		f, h := one.Acquire(locktest.Within(b)), two.Acquire(locktest.Within(b))
		b.WaitNodes(3)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() >= 3 }, "both watch") // the second waiter watches two nodes
		// The last node is deleted first: the end of a node does not let the one behind it hold.
		nodes := b.LockNodes()
		slices.SortFunc(nodes, func(x, y string) int { return locktest.BySequence(y, x) })
		ops := []any{}
		for _, node := range nodes {
			ops = append(ops, &zk.DeleteRequest{Path: b.LockPath + "/" + node, Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: b.LockPath, Version: -1})
		_, err := conn.Multi(ops...)
		locktest.Must(b, err)
		var g *actors.Grant
		select {
		case <-f.Done():
			g, err = f.Result()
			locktest.Must(b, err)
			b.WaitNodes(2)
			locktest.Pending(b, h)
			f = h
		case <-h.Done():
			g, err = h.Result()
			locktest.Must(b, err)
			b.WaitNodes(2)
			locktest.Pending(b, f)
		case <-locktest.Within(b).Done():
			b.Fatalf("no request is granted; nodes %v", b.LockNodes())
		}
		if g.Node() == first.Path {
			b.Error("holds by the node of another contender")
		}
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

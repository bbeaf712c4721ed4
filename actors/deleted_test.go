package actors_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// removeDirectory deletes the lock's directory, unless ZooKeeper does, once it has no children.
func (b *testLock) removeDirectory(conn *zk.Conn) {
	b.Helper()
	b.waitNodes(0)
	if err := conn.Delete(b.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		b.Fatal(err)
	}
}

// ZooKeeper deletes the directory of an idle lock, as a container, and sequence numbers begin at 0
// in the next directory. No contender holds because of numbers that its process remembers.
func TestNumbersBeginAgain(t *testing.T) {
	for name, before := range map[string]int{"fewer than before": 1, "as many as before": 3, "more than before": 5} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn := b.Client(b)
				mus := []*actors.Mutex{b.mutex(), b.mutex()}
				last := actors.Token{}
				for range 3 {
					g := lock(b, mus[1])
					last = g.Token()
					unlock(b, g)
				}
				b.removeDirectory(conn)
				var ahead []*foreignNode
				for range before {
					ahead = append(ahead, b.foreignNode(conn, foreignPrefixes["go-zookeeper"]))
				}
				f := mus[1].Acquire(within(b))
				b.waitNodes(before + 1)
				for _, r := range ahead {
					pending(b, f)
					r.leave()
				}
				g := result(b, f)
				expectIncreasing(b, last, g.Token())
				waiting := mus[0].Acquire(within(b))
				b.waitNodes(2)
				pending(b, waiting)
				unlock(b, g)
				unlock(b, result(b, waiting))
			})
		})
	}
}

// The same with a holder of this library, in the other order.
func TestNumbersBeginAgainForAHolder(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.mutex(), b.mutex()
		for range 4 {
			unlock(b, lock(b, one))
			unlock(b, lock(b, two))
		}
		b.removeDirectory(conn)
		g := lock(b, one)
		f := two.Acquire(within(b))
		b.waitNodes(2)
		_, err := two.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		pending(b, f)
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// The node of a waiter is deleted, and all other nodes with the directory.
func TestDirectoryDeletedWhileWaiting(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.mutex(), b.mutex()
		first := b.foreignNode(conn, foreignPrefixes["go-zookeeper"])
		f, h := one.Acquire(within(b)), two.Acquire(within(b))
		b.waitNodes(3)
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() >= 3 }, "both watch") // the second waiter watches two nodes
		// The last node is deleted first: the end of a node does not let the one behind it hold.
		nodes := b.nodes()
		slices.SortFunc(nodes, func(x, y string) int { return bySequence(y, x) })
		ops := []any{}
		for _, node := range nodes {
			ops = append(ops, &zk.DeleteRequest{Path: b.path + "/" + node, Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: b.path, Version: -1})
		_, err := conn.Multi(ops...)
		must(b, err)
		var g *actors.Grant
		select {
		case <-f.Done():
			g, err = f.Result()
			must(b, err)
			b.waitNodes(2)
			pending(b, h)
			f = h
		case <-h.Done():
			g, err = h.Result()
			must(b, err)
			b.waitNodes(2)
			pending(b, f)
		case <-within(b).Done():
			b.Fatalf("no request is granted; nodes %v", b.nodes())
		}
		if g.Node() == first.path {
			b.Error("holds by the node of another contender")
		}
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

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

// learns bounds how long a process may go on with a lock after its nodes were deleted.
const learns = 3 * time.Second

// held are the grants of one process, and what came of their releases.
type held struct {
	mu       sync.Mutex
	grants   []*actors.Grant
	releases []release
}

type release struct {
	node  string
	begun time.Time
	err   error
}

func (h *held) add(g *actors.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants = append(h.grants, g)
}

func (h *held) unlock(t testing.TB, g *actors.Grant) {
	r := release{g.Node(), time.Now(), g.Unlock(within(t))}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releases = append(h.releases, r)
}

// valid are the grants that are not over.
func (h *held) valid() []*actors.Grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.grants), func(g *actors.Grant) bool { return g.Err() != nil })
}

// check finds that a release after late of a deleted node had an error, and none but that.
func (h *held) check(t testing.TB, deleted []string, late time.Time) {
	t.Helper()
	for _, r := range h.releases {
		gone := slices.Contains(deleted, r.node)
		switch {
		case r.err == nil && gone && !r.begun.Before(late):
			t.Errorf("unlock %v after the node was deleted: no error", r.begun.Sub(late)+learns)
		case r.err != nil && !(gone && errors.Is(r.err, actors.ErrNodeDeleted)):
			t.Errorf("unlock of %s, which was deleted %v: %v", r.node, gone, r.err)
		}
	}
}

// overlap is a grant of each process that held at one moment, if there are such.
func overlap(one, two *held) (a, b *actors.Grant) {
	for _, g := range one.valid() {
		for _, h := range two.valid() {
			if g.Err() == nil { // it was valid then and still is
				return g, h
			}
		}
	}
	return nil, nil
}

// An operator deletes all nodes of a lock that a process passes on between its own
// waiters. It learns of that within seconds, though each of its holders is a new one.
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
				var one, two held
				var deleted []string
				use := func(mu *actors.Mutex, h *held, hold time.Duration) {
					g, err := mu.Lock(within(v))
					if err != nil {
						v.Errorf("lock: %v", err)
						return
					}
					h.add(g)
					<-time.After(hold)
					h.unlock(v, g)
				}
				var all sync.WaitGroup
				for range 12 {
					all.Go(func() { use(ours, &one, 900*time.Millisecond) })
				}
				<-time.After(1500 * time.Millisecond) // the second holds
				for _, node := range v.nodes() {
					deleted = append(deleted, "/lock/"+node)
				}
				if c.directory {
					v.remove(append(slices.Clone(deleted), "/lock")...)
				} else {
					v.remove(deleted...)
				}
				late := time.Now().Add(learns)
				if len(deleted) != 11 {
					v.Errorf("%d nodes were deleted, want 11", len(deleted))
				}
				all.Go(func() { use(theirs, &two, 15*time.Second) })
				served, shared := make(chan struct{}), false
				reported := map[*actors.Grant]bool{}
				go func() {
					defer close(served)
					all.Wait()
				}()
				for !isClosed(served) {
					<-time.After(100 * time.Millisecond)
					g, h := overlap(&one, &two)
					shared = shared || len(two.valid()) > 0
					if g != nil && !reported[g] && !time.Now().Before(late) {
						reported[g] = true
						v.Errorf("%v after the deletion %s and %s hold", time.Since(late)+learns, g.Node(), h.Node())
					}
				}
				if !shared {
					v.Error("the other process never held")
				}
				one.check(v, deleted, late)
				two.check(v, deleted, late)
				if len(one.releases) != 12 || len(two.releases) != 1 {
					v.Errorf("%d and %d grants, want 12 and 1", len(one.releases), len(two.releases))
				}
				unlock(v, lock(v, ours))
				unlock(v, lock(v, theirs))
				v.clean()
			})
		})
	}
}

// Two readers of a process wait behind another's writer. The node of one is deleted, or of
// both, and then the writer leaves: both readers get grants, none of them on a deleted node.
func TestReadersDeletedBehindWriter(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(b *testLock, conn *zk.Conn, readers []any, writer *rival)
	}{
		{"then the writer leaves", func(b *testLock, conn *zk.Conn, readers []any, writer *rival) {
			_, err := conn.Multi(readers...)
			must(b, err)
			writer.leave()
		}},
		{"one of them, then the writer leaves", func(b *testLock, conn *zk.Conn, readers []any, writer *rival) {
			_, err := conn.Multi(readers[1])
			must(b, err)
			writer.leave()
		}},
		{"with the writer", func(b *testLock, conn *zk.Conn, readers []any, writer *rival) {
			_, err := conn.Multi(append(readers, &zk.DeleteRequest{Path: writer.path, Version: -1})...)
			must(b, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			serially(t, func(b *testLock) {
				conn, rw := b.Client(b), b.rw()
				writer, before := b.rival(conn, curatorID+"-__WRIT__"), b.Watches(b)
				fs := []*actors.Future[*actors.Grant]{rw.Read().Acquire(within(b)), rw.Read().Acquire(within(b))}
				b.waitNodes(3)
				zktest.Eventually(b, patience, func() bool { return b.Watches(b) > before }, "they watch")
				var deletes []any
				nodes := b.nodes()
				slices.SortFunc(nodes, func(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) })
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
// the other reader holds, and the last waits for the second writer by a new node.
func TestReaderDeletedBetweenWriters(t *testing.T) {
	serially(t, func(b *testLock) {
		conn, rw := b.Client(b), b.rw()
		first, before := b.rival(conn, curatorID+"-__WRIT__"), b.Watches(b)
		f := rw.Read().Acquire(within(b))
		b.waitNodes(2)
		others := b.nodes()
		last := rw.Read().Acquire(within(b))
		b.waitNodes(3)
		zktest.Eventually(b, patience, func() bool { return b.Watches(b) > before }, "they watch")
		deleted := slices.DeleteFunc(b.nodes(), func(node string) bool { return slices.Contains(others, node) })[0]
		results, err := conn.Multi(&zk.DeleteRequest{Path: b.path + "/" + deleted, Version: -1}, &zk.CreateRequest{
			Path: b.path + "/" + strings.Replace(curatorID, "0", "1", 1) + "-__WRIT__",
			Acl:  zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
		must(b, err)
		second := &rival{b, conn, results[1].String}
		first.leave()
		g := result(b, f)
		zktest.Eventually(b, patience, func() bool { return len(b.nodes()) == 3 || isClosed(last.Done()) }, "the last queues again")
		pending(b, last)
		unlock(b, g)
		pending(b, last)
		second.leave()
		unlock(b, result(b, last))
	})
}

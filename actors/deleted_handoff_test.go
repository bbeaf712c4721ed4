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
	for _, c := range []struct {
		name      string
		directory bool // is deleted too
	}{{"nodes", false}, {"nodes and directory", true}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				_, ours := v.mutex()
				_, theirs := v.mutex()
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
				v.by(func(conn *zk.Conn) {
					nodes, _, err := conn.Children("/lock")
					must(v, err)
					ops := []any{}
					for _, node := range nodes {
						deleted = append(deleted, "/lock/"+node)
						ops = append(ops, &zk.DeleteRequest{Path: "/lock/" + node, Version: -1})
					}
					if c.directory {
						ops = append(ops, &zk.DeleteRequest{Path: "/lock", Version: -1})
					}
					_, err = conn.Multi(ops...)
					must(v, err)
				})
				late := time.Now().Add(learns)
				if len(deleted) != 11 {
					v.Errorf("%d nodes were deleted, want 11", len(deleted))
				}
				all.Go(func() { use(theirs, &two, 15*time.Second) })
				served, shared := make(chan struct{}), false
				go func() {
					defer close(served)
					all.Wait()
				}()
				for tick := time.NewTicker(100 * time.Millisecond); !isClosed(served); {
					select {
					case <-tick.C:
					case <-served:
						tick.Stop()
						continue
					}
					g, h := overlap(&one, &two)
					shared = shared || len(two.valid()) > 0
					if g != nil && !time.Now().Before(late) {
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
				v.expectClean()
			})
		})
	}
}

// Two readers of a process wait behind another's writer. Their nodes are deleted, and
// then the writer leaves: they come in by new nodes only, behind whoever came before those.
func TestReadersDeletedBehindWriter(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(b *bed, conn *zk.Conn, readers []any, writer *rival)
	}{
		{"then the writer leaves", func(b *bed, conn *zk.Conn, readers []any, writer *rival) {
			_, err := conn.Multi(readers...)
			must(b, err)
			writer.leave()
		}},
		{"with the writer", func(b *bed, conn *zk.Conn, readers []any, writer *rival) {
			_, err := conn.Multi(append(readers, &zk.DeleteRequest{Path: writer.path, Version: -1})...)
			must(b, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(b *bed) {
				conn, rw := b.Client(b), b.rw()
				writer := b.rival(conn, curatorID+"-__WRIT__")
				fs := []*actors.Future[*actors.Grant]{rw.Read().Acquire(within(b)), rw.Read().Acquire(within(b))}
				b.waitNodes(3)
				var deletes []any
				var deleted []string
				for _, node := range b.nodes() {
					if path := b.path + "/" + node; path != writer.path {
						deleted = append(deleted, path)
						deletes = append(deletes, &zk.DeleteRequest{Path: path, Version: -1})
					}
				}
				pending(b, fs...)
				c.leave(b, conn, deletes, writer)
				for _, f := range fs {
					g := result(b, f)
					if slices.Contains(deleted, g.Node()) {
						b.Errorf("granted by the deleted node %s", g.Node())
					}
					must(b, g.Verify(within(b)))
					unlock(b, g)
				}
			})
		})
	}
}

// The same with a second writer that queues after the deletion: it comes first.
func TestReadersDeletedBetweenWriters(t *testing.T) {
	each(t, func(b *bed) {
		conn, rw := b.Client(b), b.rw()
		first := b.rival(conn, curatorID+"-__WRIT__")
		fs := []*actors.Future[*actors.Grant]{rw.Read().Acquire(within(b)), rw.Read().Acquire(within(b))}
		b.waitNodes(3)
		ops := []any{}
		for _, node := range b.nodes() {
			if path := b.path + "/" + node; path != first.path {
				ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
			}
		}
		second := b.path + "/" + strings.Replace(curatorID, "0", "1", 1) + "-__WRIT__"
		ops = append(ops, &zk.CreateRequest{Path: second, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
		results, err := conn.Multi(ops...)
		must(b, err)
		writer := &rival{b, conn, results[len(results)-1].String}
		first.leave()
		zktest.Eventually(b, patience, func() bool {
			return len(b.nodes()) == 3 || isClosed(fs[0].Done()) || isClosed(fs[1].Done())
		}, "the readers queue again")
		pending(b, fs...)
		writer.leave()
		for _, f := range fs {
			g := result(b, f)
			must(b, g.Verify(within(b)))
			unlock(b, g)
		}
	})
}

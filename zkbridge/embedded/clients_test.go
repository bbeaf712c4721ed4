package embedded_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// The lock recipes of Curator and kazoo run on both servers in the tests of package interop. These
// tests run their other recipes.

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = zktest.TimeLimit

// waitEvent takes events up to the first one of a kind, and returns it.
func waitEvent(t *testing.T, events <-chan interop.Event, kind, path string) interop.Event {
	t.Helper()
	timeout := time.After(timeLimit)
	var before []interop.Event
	for {
		select {
		case e := <-events:
			if e.Kind == kind && e.Path == path {
				return e
			}
			before = append(before, e)
		case <-timeout:
			t.Fatalf("no %s %s, but %v", kind, path, before)
		}
	}
}

// go-zookeeper's own recipe is a lock in Curator's format.
func TestGoZooKeeperLock(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path, r := s.Path(t), interop.NewResource(t)
		var contenders errgroup.Group
		for i := range 4 {
			l := zk.NewLock(s.Client(t), path, open)
			contenders.Go(func() error {
				return r.Contend(fmt.Sprint("contender-", i), interop.Exclusive, 10, func() (func() error, error) {
					return l.Unlock, l.Lock()
				})
			})
		}
		want(t, "all rounds", errors.Join(contenders.Wait(), r.Verify(0)), nil)
		want(t, "visits", len(r.Visits()), 40)
		want(t, "left over", s.Nodes(t, path), "[]")
	})
}

func TestCuratorRecipes(t *testing.T) {
	t.Parallel()
	zktest.OneRunIn(t, 8)
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		c, d := interop.Curator(t, s.Addr()), interop.Curator(t, s.Addr())
		t.Run("leader latch", func(t *testing.T) { leaderLatch(t, s.Path(t), c, d) })
		t.Run("shared count", func(t *testing.T) { sharedCount(t, s.Path(t), c, d) })
		t.Run("persistent node", func(t *testing.T) { persistentNode(t, s, c) })
		t.Run("caches", func(t *testing.T) { caches(t, s, c) })
	})
}

func leaderLatch(t *testing.T, path string, c, d *interop.CuratorClient) {
	leadInTurn(t, c.LeaderLatch(path, "one"), d.LeaderLatch(path, "two"))
}

// leadInTurn checks that one leads, and that two leads afterwards.
func leadInTurn(t *testing.T, one, two *interop.Lock) {
	held, err := one.Acquire(timeLimit)
	want(t, "leads", fmt.Sprint(held, err), "true <nil>")
	waiting := two.Begin(timeLimit)
	zktest.Eventually(t, timeLimit, func() bool {
		list, err := one.Participants()
		return err == nil && slices.Equal(list, []string{"one", "two"})
	}, "both take part")
	want(t, "leaves", one.Release(), nil)
	want(t, "leads", <-waiting, interop.Result{Held: true})
	want(t, "leaves", two.Release(), nil)
}

func sharedCount(t *testing.T, path string, c, d *interop.CuratorClient) {
	one, two := c.SharedCount(path, 5), d.SharedCount(path, 7)
	want(t, "the first seed wins", fmt.Sprint(one.Get(), two.Get()), "5 5")
	want(t, "add", one.TryAdd(3), true)
	waitEvent(t, two.Events(), "COUNT", "8")
	want(t, "add", two.TryAdd(1), true)
	waitEvent(t, one.Events(), "COUNT", "9")
	want(t, "value", fmt.Sprint(one.Get(), two.Get()), "9 9")
}

// The client creates its persistent node again after a deletion, and in the next session.
func persistentNode(t *testing.T, s *zktest.Server, c *interop.CuratorClient) {
	conn, path := s.Client(t), s.Path(t)
	owner := func() (owner int64, data string) {
		b, stat, err := conn.Get(path)
		if err != nil {
			return 0, ""
		}
		return stat.EphemeralOwner, string(b)
	}
	end := c.PersistentNode(path, "here")
	_, data := owner()
	want(t, "data", data, "here")
	want(t, "delete", conn.Delete(path, -1), nil)
	zktest.Eventually(t, timeLimit, func() bool { id, _ := owner(); return id != 0 }, "the client creates it again")
	old := c.SessionID()
	s.Expire(t, old)
	zktest.Eventually(t, timeLimit, func() bool { id, _ := owner(); return id != 0 && id != old }, "the client creates it in the new session")
	waitEvent(t, c.States(), "RECONNECTED", "")
	end()
	id, _ := owner()
	want(t, "owner at the end", id, 0)
}

func caches(t *testing.T, s *zktest.Server, c *interop.CuratorClient) {
	for _, kind := range []struct {
		name                    string
		start                   func(path string) interop.Cache
		added, changed, removed string
	}{
		{"tree", c.TreeCache, "NODE_ADDED", "NODE_UPDATED", "NODE_REMOVED"},
		{"curator", c.CuratorCache, "NODE_CREATED", "NODE_CHANGED", "NODE_DELETED"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			conn, path := s.Client(t), s.Path(t)
			create := func(path, data string) {
				_, err := conn.Create(path, []byte(data), 0, open)
				want(t, "create", err, nil)
			}
			create(path, "root")
			create(path+"/a", "1")
			cache := kind.start(path)
			waitEvent(t, cache.Events(), kind.added, path+"/a")
			create(path+"/a/b", "2")
			waitEvent(t, cache.Events(), kind.added, path+"/a/b")
			_, err := conn.Set(path+"/a/b", []byte("3"), -1)
			want(t, "set", err, nil)
			want(t, "new data", waitEvent(t, cache.Events(), kind.changed, path+"/a/b").Data, "3")
			want(t, "list", cache.List(), fmt.Sprintf("[%[1]s=root %[1]s/a=1 %[1]s/a/b=3]", path))
			want(t, "delete", conn.Delete(path+"/a/b", -1), nil)
			waitEvent(t, cache.Events(), kind.removed, path+"/a/b")
			want(t, "list", cache.List(), fmt.Sprintf("[%[1]s=root %[1]s/a=1]", path))
		})
	}
}

func TestKazooRecipes(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		k, l := interop.Kazoo(t, s.Addr()), interop.Kazoo(t, s.Addr())
		t.Run("election", func(t *testing.T) { election(t, s.Path(t), k, l) })
		t.Run("watches", func(t *testing.T) { watches(t, s, k) })
		t.Run("transaction", func(t *testing.T) { transaction(t, s, k) })
	})
}

func election(t *testing.T, path string, k, l *interop.KazooClient) {
	leadInTurn(t, k.Election(path, "one"), l.Election(path, "two"))
}

// kazoo sets its watches again after a lost connection and in a new session.
func watches(t *testing.T, s *zktest.Server, k *interop.KazooClient) {
	conn, path := s.Client(t), s.Path(t)
	_, err := conn.Create(path, []byte("1"), 0, open)
	want(t, "create", err, nil)
	data, children := k.DataWatch(path).Events(), k.ChildrenWatch(path).Events()
	want(t, "data", <-data, interop.Event{Kind: "DATA", Path: path, Data: "1"})
	want(t, "children", <-children, interop.Event{Kind: "CHILDREN", Path: path})
	for i, change := range []func(){
		func() {},
		func() { s.Expire(t, k.SessionID()) },
	} {
		change()
		text := fmt.Sprint("value-", i)
		_, err = conn.Set(path, []byte(text), -1)
		want(t, "set", err, nil)
		_, err = conn.Create(path+"/"+text, nil, 0, open)
		want(t, "create", err, nil)
		want(t, "data", (<-data).Data, text)
		names := (<-children).Data
		want(t, "children", names, []string{"value-0", "value-0 value-1"}[i])
	}
}

func transaction(t *testing.T, s *zktest.Server, k *interop.KazooClient) {
	conn, path := s.Client(t), s.Path(t)
	want(t, "executed", k.Transaction([3]string{"create", path, "1"}, [3]string{"create", path + "/a", ""},
		[3]string{"set", path, "2"}, [3]string{"check", path, "1"}, [3]string{"delete", path + "/a", ""}), "[ok ok ok ok ok]")
	want(t, "rolled back", k.Transaction([3]string{"set", path, "3"}, [3]string{"check", path, "1"},
		[3]string{"delete", path, ""}), "[RolledBackError BadVersionError RuntimeInconsistency]")
	b, stat, err := conn.Get(path)
	want(t, "data", fmt.Sprintf("%s %d %v", b, stat.Version, err), "2 1 <nil>")
}

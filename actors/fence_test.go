package actors_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestVerify(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		g := lock(b, locks.Mutex(b.path))
		must(b, g.Verify(within(b)))
		must(b, others.VerifyToken(within(b), g.Node(), g.Token()))
		wrong := g.Token()
		wrong.Czxid++
		if err := others.VerifyToken(within(b), g.Node(), wrong); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("of another token: %v", err)
		}
		must(b, g.Unlock(within(b)))
		if err := g.Verify(within(b)); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("after release: %v", err)
		}
		if err := others.VerifyToken(within(b), g.Node(), g.Token()); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("of a released grant: %v", err)
		}
	})
}

// Verify finds that the node is deleted before the holder has noticed that.
func TestVerifyOfADeletedNode(t *testing.T) {
	each(t, func(b *testLock) {
		g := lock(b, b.mutex())
		must(b, b.Client(b).Delete(g.Node(), -1))
		if err := g.Verify(within(b)); !errors.Is(err, actors.ErrNodeDeleted) {
			b.Errorf("got %v", err)
		}
		g.Release()
	})
}

// ZooKeeper executes a write with Guard while the grant holds, and refuses the write after its end,
// from whichever client.
func TestGuard(t *testing.T) {
	each(t, func(b *testLock) {
		client, resource := b.Client(b), b.Path(b)
		_, err := client.Create(resource, []byte("0"), 0, zk.WorldACL(zk.PermAll))
		must(b, err)
		b.Cleanup(func() { client.Delete(resource, -1) })
		write := func(text string) any { return &zk.SetDataRequest{Path: resource, Data: []byte(text), Version: -1} }

		locks, others := b.locks(), b.locks()
		g := lock(b, locks.Mutex(b.path))
		results, err := locks.Multi(within(b), g.Guard(write("1"))...)
		must(b, err)
		if len(results) != 2 || results[1].Stat.Version != 1 {
			b.Errorf("results %+v", results)
		}
		_, err = client.Multi(g.Guard(write("2"))...)
		must(b, err)

		b.Expire(b, g.Session())
		next := lock(b, others.Mutex(b.path))
		_, err = client.Multi(g.Guard(write("late"))...)
		if !errors.Is(err, zk.ErrNoNode) {
			b.Errorf("a late write by another client: %v", err)
		}
		zktest.Eventually(b, timeLimit, func() bool {
			now := locks.Session()
			return g.Err() != nil && now.Epoch == 2 && now.State == messages.SessionState_CONNECTED
		}, "the holder has noticed its loss, and has a new session")
		_, err = locks.Multi(within(b), g.Guard(write("late"))...)
		var failed *zkbridge.OpError
		if !errors.As(err, &failed) || failed.Index != 0 || !errors.Is(err, zk.ErrNoNode) {
			b.Errorf("a late write: %v", err)
		}
		_, err = others.Multi(within(b), next.Guard(write("3"))...)
		must(b, err)
		data, _, err := client.Get(resource)
		must(b, err)
		if string(data) != "3" {
			b.Errorf("data %q", data)
		}
		unlock(b, next)
		g.Release()
	})
}

func TestSuspendedEndsContexts(t *testing.T) {
	each(t, func(b *testLock) {
		for _, stop := range []bool{true, false} {
			proxy := zktest.Proxy(b, b.Addr())
			locks, err := actors.Connect(within(b), proxy.Addr(), actors.Config{SessionTimeout: longSession, StopOnSuspended: stop})
			must(b, err)
			g := lock(b, locks.Mutex(b.path))
			ctx := g.Context(b.Context())
			proxy.Cut()
			if stop {
				<-ctx.Done()
			}
			zktest.Eventually(b, timeLimit, func() bool {
				return locks.Session().State == messages.SessionState_CONNECTED && g.Verify(within(b)) == nil
			}, "the grant goes on")
			if ended := ctx.Err() != nil; ended != stop {
				b.Errorf("StopOnSuspended %v: context ended %v", stop, ended)
			}
			if g.Err() != nil || g.Context(b.Context()).Err() != nil {
				b.Errorf("the grant has ended: %v", g.Err())
			}
			unlock(b, g)
			must(b, locks.Close())
		}
	})
}

// The rule of a custom lock determines whether a node may be newer than its token.
func TestVerifyTokenOfADowngradedCustomLock(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		table, there := b.tableOf(locks), b.table()
		x := lock(b, table.Kind("X"), actors.WithOwner("me"))
		s := lock(b, table.Kind("S"), actors.WithOwner("me"))
		if s.Token() != x.Token() {
			b.Errorf("tokens %v and %v", s.Token(), x.Token())
		}
		must(b, there.VerifyToken(within(b), x.Node(), x.Token()))
		must(b, there.VerifyToken(within(b), s.Node(), s.Token()))
		older, newer := s.Token(), s.Token()
		older.Czxid--
		newer.Czxid += 1000
		is(b, there.VerifyToken(within(b), x.Node(), older), actors.ErrNotHeld) // no kind becomes X
		is(b, there.VerifyToken(within(b), s.Node(), newer), actors.ErrNotHeld)
		unlock(b, x)
		must(b, there.VerifyToken(within(b), s.Node(), s.Token()))
		unlock(b, s)
		is(b, there.VerifyToken(within(b), s.Node(), s.Token()), actors.ErrNotHeld)
	})
}

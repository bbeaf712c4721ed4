package recipes

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestVerify(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		locktest.Must(b, g.Verify(locktest.Within(b)))
		locktest.Must(b, others.VerifyToken(locktest.Within(b), g.Node(), g.Token()))
		wrong := g.Token()
		wrong.Czxid++
		if err := others.VerifyToken(locktest.Within(b), g.Node(), wrong); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("of another token: %v", err)
		}
		locktest.Must(b, g.Unlock(locktest.Within(b)))
		if err := g.Verify(locktest.Within(b)); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("after release: %v", err)
		}
		if err := others.VerifyToken(locktest.Within(b), g.Node(), g.Token()); !errors.Is(err, actors.ErrNotHeld) {
			b.Errorf("of a released grant: %v", err)
		}
	})
}

// Verify finds that the node is deleted before the holder has noticed that.
func TestVerifyOfADeletedNode(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		g := locktest.Lock(b, b.Mutex())
		locktest.Must(b, b.Client(b).Delete(g.Node(), -1))
		if err := g.Verify(locktest.Within(b)); !errors.Is(err, actors.ErrNodeDeleted) {
			b.Errorf("got %v", err)
		}
		g.Release()
	})
}

// ZooKeeper executes a write with Guard while the grant holds, and refuses the write after its end,
// from whichever client.
func TestGuard(t *testing.T) {
	locktest.NeedsZooKeeper(t, "transactions of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		client, resource := b.Client(b), b.Path(b)
		_, err := client.Create(resource, []byte("0"), 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		b.Cleanup(func() { client.Delete(resource, -1) })
		write := func(text string) any { return &zk.SetDataRequest{Path: resource, Data: []byte(text), Version: -1} }

		locks, others := b.Locks(), b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		results, err := locks.Multi(locktest.Within(b), g.Guard(write("1"))...)
		locktest.Must(b, err)
		if len(results) != 2 || results[1].Stat.Version != 1 {
			b.Errorf("results %+v", results)
		}
		_, err = client.Multi(g.Guard(write("2"))...)
		locktest.Must(b, err)

		before := locks.Session().Epoch
		b.Expire(b, g.Session())
		next := locktest.Lock(b, others.Mutex(b.LockPath))
		_, err = client.Multi(g.Guard(write("late"))...)
		if !errors.Is(err, zk.ErrNoNode) {
			b.Errorf("a late write by another client: %v", err)
		}
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			now := locks.Session()
			return g.Err() != nil && now.Epoch == before+1 && now.State == messages.SessionState_CONNECTED
		}, "the holder has noticed its loss, and has a new session")
		_, err = locks.Multi(locktest.Within(b), g.Guard(write("late"))...)
		var failed *zkbridge.OpError
		if !errors.As(err, &failed) || failed.Index != 0 || !errors.Is(err, zk.ErrNoNode) {
			b.Errorf("a late write: %v", err)
		}
		_, err = others.Multi(locktest.Within(b), next.Guard(write("3"))...)
		locktest.Must(b, err)
		data, _, err := client.Get(resource)
		locktest.Must(b, err)
		if string(data) != "3" {
			b.Errorf("data %q", data)
		}
		locktest.Unlock(b, next)
		g.Release()
	})
}

func TestSuspendedEndsContexts(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption()
		for _, stop := range []bool{true, false} {
			proxy := zktest.Proxy(b, b.Addr())
			locks, err := actors.Connect(locktest.Within(b), proxy.Addr(), actors.Config{SessionTimeout: locktest.LongSession, StopOnSuspended: stop})
			locktest.Must(b, err)
			g := locktest.Lock(b, locks.Mutex(b.LockPath))
			ctx := g.Context(b.Context())
			proxy.Cut()
			if stop {
				<-ctx.Done()
			}
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				return locks.Session().State == messages.SessionState_CONNECTED && g.Verify(locktest.Within(b)) == nil
			}, "the grant goes on")
			if ended := ctx.Err() != nil; ended != stop {
				b.Errorf("StopOnSuspended %v: context ended %v", stop, ended)
			}
			if g.Err() != nil || g.Context(b.Context()).Err() != nil {
				b.Errorf("the grant has ended: %v", g.Err())
			}
			locktest.Unlock(b, g)
			locktest.Must(b, locks.Close())
		}
	})
}

// The rule of a custom lock determines whether a node may be newer than its token.
func TestVerifyTokenOfADowngradedCustomLock(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		table, there := tableOf(b, locks), newTable(b)
		x := locktest.Lock(b, table.Kind("X"), actors.WithOwner("me"))
		s := locktest.Lock(b, table.Kind("S"), actors.WithOwner("me"))
		if s.Token() != x.Token() {
			b.Errorf("tokens %v and %v", s.Token(), x.Token())
		}
		locktest.Must(b, there.VerifyToken(locktest.Within(b), x.Node(), x.Token()))
		locktest.Must(b, there.VerifyToken(locktest.Within(b), s.Node(), s.Token()))
		older, newer := s.Token(), s.Token()
		older.Czxid--
		newer.Czxid += 1000
		locktest.Is(b, there.VerifyToken(locktest.Within(b), x.Node(), older), actors.ErrNotHeld) // no kind becomes X
		locktest.Is(b, there.VerifyToken(locktest.Within(b), s.Node(), newer), actors.ErrNotHeld)
		locktest.Unlock(b, x)
		locktest.Must(b, there.VerifyToken(locktest.Within(b), s.Node(), s.Token()))
		locktest.Unlock(b, s)
		locktest.Is(b, there.VerifyToken(locktest.Within(b), s.Node(), s.Token()), actors.ErrNotHeld)
	})
}

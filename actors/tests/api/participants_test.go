package api

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// Participants returns the holders and the waiters of this process and others, in their order.
func TestParticipants(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		locks := b.Locks()
		rw := locks.RWMutex(b.LockPath)
		none, err := rw.Read().Participants(locktest.Within(b))
		if err != nil || len(none) != 0 {
			b.Errorf("%v, %v of an unused lock", none, err)
		}
		r := locktest.Lock(b, rw.Read(), actors.WithData([]byte("me")))
		theirs := b.ForeignNode(conn, locktest.CuratorID+"-__READ__")
		_, err = conn.Create(b.LockPath+"/unrelated", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		w := rw.Write().Acquire(locktest.Within(b), actors.WithData([]byte("next")))
		b.WaitNodes(4)

		all, err := b.RWMutex().Read().Participants(locktest.Within(b))
		locktest.Must(b, err)
		if len(all) != 3 {
			b.Fatalf("%d participants: %+v", len(all), all)
		}
		for i, want := range []struct {
			kind, data string
			holds      bool
		}{{"read", "me", true}, {"read", "", true}, {"write", "next", false}} {
			p := all[i]
			if p.Kind != want.kind || string(p.Data) != want.data || p.Holds != want.holds || p.Ahead != i || p.Local {
				b.Errorf("participant %d: %+v", i, p)
			}
			if age := time.Since(p.Since); age < -time.Minute || age > time.Minute {
				b.Errorf("participant %d has been there for %v", i, age)
			}
		}
		if all[0].Node != r.Node() || all[0].Token != r.Token() || all[0].Session != r.Session() || all[1].Node != theirs.Path {
			b.Errorf("%+v", all)
		}
		if all, err := rw.Write().Participants(locktest.Within(b)); err != nil || !all[0].Local || all[1].Local || !all[2].Local {
			b.Errorf("%+v, %v", all, err)
		}
		locktest.Must(b, conn.Delete(b.LockPath+"/unrelated", -1))
		theirs.Leave()
		locktest.Unlock(b, r)
		locktest.Unlock(b, locktest.Result(b, w))
		_, err = locks.Mutex("relative").Participants(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
	})
}

// A downgraded reader has its writer's place, and holds.
func TestParticipantsOfADowngrade(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw := b.RWMutex()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		next := rw.Write().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		all, err := rw.Read().Participants(locktest.Within(b))
		locktest.Must(b, err)
		if len(all) != 3 || all[0].Node != w.Node() || !all[0].Holds || all[1].Node != r.Node() || !all[1].Holds || all[2].Holds || all[2].Ahead != 2 {
			b.Errorf("%+v", all)
		}
		locktest.Unlock(b, w)
		locktest.Unlock(b, r)
		locktest.Unlock(b, locktest.Result(b, next))
	})
}

// The participants of a semaphore are its leases. Revoke asks the holder of one to release.
func TestParticipantsOfASemaphore(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := b.Locks().Semaphore(b.LockPath, 3)
		two := locktest.Lock(b, s, actors.Permits(2), actors.WithData([]byte("two")), actors.Revocable())
		next := s.Acquire(locktest.Within(b), actors.Permits(2))
		b.WaitNodes(4, "/leases")
		all, err := b.Locks().Semaphore(b.LockPath, 3).Participants(locktest.Within(b))
		if err != nil || len(all) != 4 {
			b.Fatalf("%+v, %v", all, err)
		}
		for i, p := range all {
			if p.Holds != (i < 3) || (string(p.Data) == "two") != (i < 2) || p.Kind != "permit" {
				b.Errorf("participant %d: %+v", i, p)
			}
		}
		if all[0].Node != two.Nodes()[0] || all[1].Node != two.Nodes()[1] {
			b.Errorf("%v of %v", two.Nodes(), all)
		}
		// A child of any name takes a permit.
		conn := b.Client(b)
		foreign, err := conn.Create(b.LockPath+"/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		if all, err := s.Participants(locktest.Within(b)); err != nil || len(all) != 4 || !all[1].Holds || all[2].Holds {
			b.Errorf("beside a foreign child: %+v, %v", all, err)
		}
		locktest.Must(b, conn.Delete(foreign, -1))
		if n, err := s.RevokeHolders(locktest.Within(b), 0); n != 0 || err != nil {
			b.Errorf("%d, %v", n, err)
		}
		locktest.Closes(b, two.Revoked(), "the request to release")
		locktest.Unlock(b, two)
		locktest.Unlock(b, locktest.Result(b, next))
		_, err = s.RevokeHolders(locktest.Within(b), 0)
		locktest.Must(b, err)
	})
}

package actors_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
)

// Participants returns the holders and the waiters of this process and others, in their order.
func TestParticipants(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		locks := b.locks()
		rw := locks.RWMutex(b.path)
		none, err := rw.Read().Participants(within(b))
		if err != nil || len(none) != 0 {
			b.Errorf("%v, %v of an unused lock", none, err)
		}
		r := lock(b, rw.Read(), actors.WithData([]byte("me")))
		theirs := b.foreignNode(conn, curatorID+"-__READ__")
		_, err = conn.Create(b.path+"/unrelated", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		w := rw.Write().Acquire(within(b), actors.WithData([]byte("next")))
		b.waitNodes(4)

		all, err := b.rw().Read().Participants(within(b))
		must(b, err)
		if len(all) != 3 {
			b.Fatalf("%d participants: %+v", len(all), all)
		}
		for i, want := range []struct {
			kind, data string
			holds      bool
		}{{"read", "me", true}, {"read", "", true}, {"write", "next", false}} {
			p := all[i]
			if p.Kind != want.kind || string(p.Data) != want.data || p.Holds != want.holds || p.Ahead != i || p.Mine {
				b.Errorf("participant %d: %+v", i, p)
			}
			if age := time.Since(p.Since); age < -time.Minute || age > time.Minute {
				b.Errorf("participant %d has been there for %v", i, age)
			}
		}
		if all[0].Node != r.Node() || all[0].Token != r.Token() || all[0].Session != r.Session() || all[1].Node != theirs.path {
			b.Errorf("%+v", all)
		}
		if mine, err := rw.Write().Participants(within(b)); err != nil || !mine[0].Mine || mine[1].Mine || !mine[2].Mine {
			b.Errorf("%+v, %v", mine, err)
		}
		must(b, conn.Delete(b.path+"/unrelated", -1))
		theirs.leave()
		unlock(b, r)
		unlock(b, result(b, w))
		_, err = locks.Mutex("relative").Participants(within(b))
		is(b, err, actors.ErrInvalid)
	})
}

// A downgraded reader has its writer's place, and holds.
func TestParticipantsOfADowngrade(t *testing.T) {
	each(t, func(b *testLock) {
		rw := b.rw()
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		next := rw.Write().Acquire(within(b))
		b.waitNodes(2)
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		all, err := rw.Read().Participants(within(b))
		must(b, err)
		if len(all) != 3 || all[0].Node != w.Node() || !all[0].Holds || all[1].Node != r.Node() || !all[1].Holds || all[2].Holds || all[2].Ahead != 2 {
			b.Errorf("%+v", all)
		}
		unlock(b, w)
		unlock(b, r)
		unlock(b, result(b, next))
	})
}

// The participants of a semaphore are its leases. Revoke asks the holder of one to release.
func TestParticipantsOfASemaphore(t *testing.T) {
	each(t, func(b *testLock) {
		s := b.locks().Semaphore(b.path, 3)
		two := lock(b, s, actors.Permits(2), actors.WithData([]byte("two")), actors.Revocable())
		next := s.Acquire(within(b), actors.Permits(2))
		b.waitNodes(4, "/leases")
		all, err := b.locks().Semaphore(b.path, 3).Participants(within(b))
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
		foreign, err := conn.Create(b.path+"/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		if all, err := s.Participants(within(b)); err != nil || len(all) != 4 || !all[1].Holds || all[2].Holds {
			b.Errorf("beside a foreign child: %+v, %v", all, err)
		}
		must(b, conn.Delete(foreign, -1))
		if n, err := s.RevokeHolders(within(b), 0); n != 0 || err != nil {
			b.Errorf("%d, %v", n, err)
		}
		closes(b, two.Revoked(), "the request to release")
		unlock(b, two)
		unlock(b, result(b, next))
		_, err = s.RevokeHolders(within(b), 0)
		must(b, err)
	})
}

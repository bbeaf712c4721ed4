package failures

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// follower returns a member that does not lead, and the addresses of the others.
func follower(b *locktest.Fixture) (member *zktest.Server, others string) {
	b.Helper()
	leader := b.Leader(b)
	for _, m := range b.Members() {
		if m != leader {
			return m, addressesWithout(b, m)
		}
	}
	return nil, ""
}

// addressesWithout returns the addresses of all members but one.
func addressesWithout(b *locktest.Fixture, member *zktest.Server) string {
	var addrs []string
	for _, m := range b.Members() {
		if m != member {
			addrs = append(addrs, m.Addr())
		}
	}
	return strings.Join(addrs, ",")
}

// A follower is cut off from its ensemble, and goes on to answer the holder until it notices. With
// a margin of (syncLimit + 1/2) * tickTime, here 2250 ms, the holder notices its loss before
// another client holds.
func TestFollowerIsCutOff(t *testing.T) {
	b := locktest.Ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	follower, others := follower(b)
	holder := locktest.Connect(b.T, follower.Addr(), func(cfg *actors.Config) {
		cfg.SessionTimeout, cfg.Margin = 10*time.Second, 4500*time.Millisecond
	})
	other := locktest.Connect(b.T, others).Mutex(b.LockPath)
	g := locktest.Lock(b, holder.Mutex(b.LockPath))
	f := other.Acquire(locktest.Within(b))
	b.WaitNodes(2)
	follower.Isolate(b, true)
	if s := holder.Session(); s.State != messages.SessionState_CONNECTED {
		b.Errorf("the holder's session is %v: it should not have noticed", s.State)
	}
	locktest.Closes(b, g.Done(), "the grant")
	locktest.Pending(b, f)
	locktest.Is(b, g.Err(), actors.ErrSessionLost)
	h := locktest.Result(b, f)
	locktest.ExpectIncreasing(b, g.Token(), h.Token())
	locktest.Is(b, locktest.Failure(b, g.Release()), actors.ErrSessionLost)
	again := holder.Mutex(b.LockPath).Acquire(locktest.Within(b))
	follower.Isolate(b, false)
	b.WaitNodes(2)
	locktest.Pending(b, again)
	locktest.Unlock(b, h)
	locktest.Unlock(b, locktest.Result(b, again))
	b.Clean()
}

// The member that the holder is connected to, a follower or the leader, is killed, or freezes for
// longer than the session.
func TestMembersFail(t *testing.T) {
	b := locktest.Ensemble(t)
	for _, role := range []string{"follower", "leader"} {
		pick := func() *zktest.Server {
			if role == "leader" {
				return b.Leader(b)
			}
			m, _ := follower(b)
			return m
		}
		failMember(b, role+" killed", pick(), (*zktest.Server).Stop, (*zktest.Server).Start, locktest.LongSession)
		failMember(b, role+" frozen", pick(), (*zktest.Server).Freeze, (*zktest.Server).Thaw, 6*time.Second)
	}
}

// failMember has the member of a holder fail. The grant goes on, or the holder notices its end
// before another contender holds.
func failMember(b *locktest.Fixture, what string, member *zktest.Server, fail, repair func(*zktest.Server, testing.TB), timeout time.Duration) {
	b.Helper()
	holder := b.LocksOn(member, func(cfg *actors.Config) { cfg.SessionTimeout = timeout })
	others := locktest.Connect(b.T, addressesWithout(b, member))
	mu := holder.Mutex(b.LockPath)
	g := locktest.Lock(b, mu)
	f := others.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(2)
	fail(member, b)
	var err error
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		err = g.Verify(locktest.Within(b))
		return !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) && !errors.Is(err, actors.ErrSuspended)
	}, "ZooKeeper answers, or the session is lost")
	if err == nil {
		locktest.Pending(b, f)
	} else {
		locktest.Closes(b, g.Done(), what+": the grant")
	}
	if timeout == locktest.LongSession && g.Err() != nil {
		b.Errorf("%s: %v", what, g.Err())
	}
	g.Release()
	h := locktest.Result(b, f)
	if h.Token().Compare(g.Token()) <= 0 {
		b.Errorf("%s: token %v after %v", what, h.Token(), g.Token())
	}
	again := mu.Acquire(locktest.Within(b))
	repair(member, b)
	member.Start(b) // which waits until the running member serves
	locktest.Unlock(b, h)
	locktest.Unlock(b, locktest.Result(b, again))
	b.Clean()
	locktest.Must(b, holder.Close())
	locktest.Must(b, others.Close())
}

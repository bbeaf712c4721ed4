package actors_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// follower returns a member that does not lead, and the addresses of the others.
func (b *testLock) follower() (member *zktest.Server, others string) {
	b.Helper()
	leader := b.Leader(b)
	for _, m := range b.Members() {
		if m != leader {
			return m, b.addressesWithout(m)
		}
	}
	return nil, ""
}

// addressesWithout returns the addresses of all members but one.
func (b *testLock) addressesWithout(member *zktest.Server) string {
	var addrs []string
	for _, m := range b.Members() {
		if m != member {
			addrs = append(addrs, m.Addr())
		}
	}
	return strings.Join(addrs, ",")
}

// locksOn returns Locks that know all members, and that connect to the given member first.
func (b *testLock) locksOn(member *zktest.Server, configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	var proxies []*zktest.TCPProxy
	var addrs []string
	for _, m := range b.Members() {
		p := zktest.Proxy(b, m.Addr())
		p.Refuse(m != member)
		proxies, addrs = append(proxies, p), append(addrs, p.Addr())
	}
	locks := connect(b.T, strings.Join(addrs, ","), configure...)
	for _, p := range proxies {
		p.Refuse(false)
	}
	return locks
}

// A follower is cut off from its ensemble, and goes on to answer the holder until it notices. With
// a margin of (syncLimit + 1/2) * tickTime, here 2250 ms, the holder notices its loss before
// another client holds.
func TestFollowerIsCutOff(t *testing.T) {
	b := ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	follower, others := b.follower()
	holder := connect(b.T, follower.Addr(), func(cfg *actors.Config) {
		cfg.SessionTimeout, cfg.Margin = 10*time.Second, 4500*time.Millisecond
	})
	other := connect(b.T, others).Mutex(b.path)
	g := lock(b, holder.Mutex(b.path))
	f := other.Acquire(within(b))
	b.waitNodes(2)
	follower.Isolate(b, true)
	if s := holder.Session(); s.State != messages.SessionState_CONNECTED {
		b.Errorf("the holder's session is %v: it should not have noticed", s.State)
	}
	closes(b, g.Done(), "the grant")
	pending(b, f)
	is(b, g.Err(), actors.ErrSessionLost)
	h := result(b, f)
	expectIncreasing(b, g.Token(), h.Token())
	is(b, failure(b, g.Release()), actors.ErrSessionLost)
	again := holder.Mutex(b.path).Acquire(within(b))
	follower.Isolate(b, false)
	b.waitNodes(2)
	pending(b, again)
	unlock(b, h)
	unlock(b, result(b, again))
	b.clean()
}

// The member that the holder is connected to, a follower or the leader, is killed, or freezes for
// longer than the session.
func TestMembersFail(t *testing.T) {
	b := ensemble(t)
	for _, role := range []string{"follower", "leader"} {
		pick := func() *zktest.Server {
			if role == "leader" {
				return b.Leader(b)
			}
			m, _ := b.follower()
			return m
		}
		b.failMember(role+" killed", pick(), (*zktest.Server).Stop, (*zktest.Server).Start, longSession)
		b.failMember(role+" frozen", pick(), (*zktest.Server).Freeze, (*zktest.Server).Thaw, 6*time.Second)
	}
}

// failMember has the member of a holder fail. The grant goes on, or the holder notices its end
// before another contender holds.
func (b *testLock) failMember(what string, member *zktest.Server, fail, repair func(*zktest.Server, testing.TB), timeout time.Duration) {
	b.Helper()
	holder := b.locksOn(member, func(cfg *actors.Config) { cfg.SessionTimeout = timeout })
	others := connect(b.T, b.addressesWithout(member))
	mu := holder.Mutex(b.path)
	g := lock(b, mu)
	f := others.Mutex(b.path).Acquire(within(b))
	b.waitNodes(2)
	fail(member, b)
	var err error
	zktest.Eventually(b, timeLimit, func() bool {
		err = g.Verify(within(b))
		return !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) && !errors.Is(err, actors.ErrSuspended)
	}, "ZooKeeper answers, or the session is lost")
	if err == nil {
		pending(b, f)
	} else {
		closes(b, g.Done(), what+": the grant")
	}
	if timeout == longSession && g.Err() != nil {
		b.Errorf("%s: %v", what, g.Err())
	}
	g.Release()
	h := result(b, f)
	if h.Token().Compare(g.Token()) <= 0 {
		b.Errorf("%s: token %v after %v", what, h.Token(), g.Token())
	}
	again := mu.Acquire(within(b))
	repair(member, b)
	member.Start(b) // which waits until the running member serves
	unlock(b, h)
	unlock(b, result(b, again))
	b.clean()
	must(b, holder.Close())
	must(b, others.Close())
}

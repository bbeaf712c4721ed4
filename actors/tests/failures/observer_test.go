package failures

import (
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Three members vote, and an observer far from them serves clients, one of which knows no other
// server. The log has what an acquire and a release cost there. Then the observer is killed: the
// client that knows other servers goes on to hold, and the other one loses its lock.
func TestObserver(t *testing.T) {
	if testing.Short() {
		t.Skip("starts four servers")
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	b := locktest.NewFixture(t, zktest.Ensemble(t, 4, zktest.Observer(), zktest.Links(), zktest.TickTime(500*time.Millisecond)))
	observer := b.Members()[3]
	voters := locktest.Connect(t, addressesWithout(b, observer))
	only := locktest.Connect(t, observer.Addr(), func(cfg *actors.Config) { cfg.SessionTimeout = 6 * time.Second })
	both := b.LocksOn(observer)

	const delay = 25 * time.Millisecond
	link := zktest.Proxy(b, b.Leader(b).Addr())
	far := locktest.Connect(t, link.Addr())
	for _, d := range []time.Duration{0, delay} {
		observer.Delay(b, d)
		link.Delay(d)
		logCosts(b, only.Mutex(b.LockPath+"-only"), "by the observer, its links delayed by", d)
		logCosts(b, far.Mutex(b.LockPath+"-far"), "by the leader, the client's link delayed by", d)
	}
	// A waiter at the observer has the lock from a holder at the leader.
	g := locktest.Lock(b, voters.Mutex(b.LockPath))
	f := only.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(2)
	locktest.Pending(b, f)
	locktest.Unlock(b, g)
	h := locktest.Result(b, f)
	locktest.ExpectIncreasing(b, g.Token(), h.Token())

	held := locktest.Lock(b, both.Mutex(b.LockPath+"-held"))
	next := voters.Mutex(b.LockPath).Acquire(locktest.Within(b))
	observer.Stop(b)
	begun := time.Now()
	zktest.Eventually(b, zktest.TimeLimit, func() bool { return held.Err() != nil || held.Verify(locktest.Within(b)) == nil },
		"the client that knows the others has moved")
	b.Logf("the client that knows the others moved within %v", time.Since(begun))
	locktest.Must(b, held.Err())
	locktest.Closes(b, h.Done(), "the grant at the observer")
	locktest.Is(b, h.Err(), actors.ErrSessionLost)
	b.Logf("the client that knows only the observer lost its lock after %v", time.Since(begun))
	g = locktest.Result(b, next)
	locktest.ExpectIncreasing(b, h.Token(), g.Token())
	b.Logf("the next holder held after %v", time.Since(begun))

	// The observer does not count for the majority: two of three go on.
	voter, _ := follower(b)
	voter.Stop(b)
	locktest.Unlock(b, locktest.Lock(b, voters.Mutex(b.LockPath+"-majority")))
	voter.Start(b)

	again := only.Mutex(b.LockPath).Acquire(locktest.Within(b))
	observer.Start(b)
	b.WaitNodes(2)
	locktest.Unlock(b, g)
	locktest.Unlock(b, locktest.Result(b, again))
	locktest.Unlock(b, held)
	b.Clean()
}

// logCosts logs the medians of the times of an acquire and of a release.
func logCosts(b *locktest.Fixture, mu *actors.Mutex, where string, d time.Duration) {
	locktest.Unlock(b, locktest.Lock(b, mu)) // which reads the directory
	var acquires, releases []time.Duration
	for range 21 {
		begun := time.Now()
		g := locktest.Lock(b, mu)
		granted := time.Now()
		locktest.Unlock(b, g)
		acquires, releases = append(acquires, granted.Sub(begun)), append(releases, time.Since(granted))
	}
	slices.Sort(acquires)
	slices.Sort(releases)
	b.Logf("%s %v: acquire %v, release %v", where, d, acquires[10], releases[10])
}

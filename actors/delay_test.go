package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const delay = 15 * time.Second

// delayedMutex returns the lock with a lock-delay, on a connection of its own.
func (v *virtual) delayedMutex() (*actors.Locks, *actors.Mutex) {
	v.Helper()
	locks := v.locks()
	return locks, locks.Mutex("/lock", actors.LockDelay(delay))
}

// loseSession acquires the lock, whose session then ends.
func (v *virtual) loseSession(mu *actors.Mutex) {
	v.Helper()
	g := lock(v, mu)
	v.Expire(g.Session())
	v.Cleanup(func() { g.Release() })
}

// grantedAfter checks the time until f is granted, and returns the grant.
func grantedAfter(t testing.TB, since time.Time, want time.Duration, f *actors.Future[*actors.Grant]) *actors.Grant {
	t.Helper()
	g, err := f.Wait(t.Context())
	must(t, err)
	if took := time.Since(since); took != want {
		t.Errorf("granted after %v, want %v", took, want)
	}
	return g
}

// The held marker exists while the lock is held, and the next contender then holds at once.
func TestLockDelayAfterRelease(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.locks().Mutex(b.path, actors.LockDelay(time.Minute)), b.locks().Mutex(b.path, actors.LockDelay(time.Minute))
		last := actors.Token{}
		for i := range 6 {
			mu := []*actors.Mutex{one, two, two}[i%3]
			g := lock(b, mu)
			if data, _, err := conn.Get(b.path + heldMarker); err != nil || b.path+"/"+string(data) != g.Node() {
				b.Errorf("held marker %q, %v while %s holds", data, err, g.Node())
			}
			expectIncreasing(b, last, g.Token())
			last = g.Token()
			next := []*actors.Future[*actors.Grant]{one.Acquire(within(b)), two.Acquire(within(b))}
			b.waitNodes(3)
			_, err := mu.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
			pending(b, next...)
			unlock(b, g)
			b.inTurn(func(*actors.Grant) {}, next...)
		}
		if ok, _, err := conn.Exists(b.path + heldMarker); ok || err != nil {
			b.Errorf("the held marker is there: %v, %v", ok, err)
		}
	})
}

// The held marker exists until the owner's last release.
func TestLockDelayReentry(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		mu, me := b.locks().Mutex(b.path, actors.LockDelay(time.Minute)), actors.WithOwner("me")
		f := mu.Acquire(within(b), me) // perhaps before the held marker is made
		g, h := lock(b, mu, me), result(b, f)
		unlock(b, g)
		if data, _, err := conn.Get(b.path + heldMarker); err != nil || b.path+"/"+string(data) != h.Node() {
			b.Errorf("held marker %q, %v", data, err)
		}
		unlock(b, h)
		if ok, _, err := conn.Exists(b.path + heldMarker); ok || err != nil {
			b.Errorf("the held marker is there: %v, %v", ok, err)
		}
	})
}

// losses are the ways in which a grant ends without a release.
var losses = map[string]func(v *virtual, locks *actors.Locks, g *actors.Grant){
	"session expired": func(v *virtual, _ *actors.Locks, g *actors.Grant) { v.Expire(g.Session()) },
	"locks closed":    func(v *virtual, locks *actors.Locks, _ *actors.Grant) { must(v, locks.Close()) },
	"node deleted": func(v *virtual, locks *actors.Locks, g *actors.Grant) {
		_, err := locks.Multi(within(v), &zk.DeleteRequest{Path: g.Node(), Version: -1})
		must(v, err)
	},
}

// The first waiter waits for the delay, and the waiters behind it do not.
func TestLockDelayAfterLoss(t *testing.T) {
	t.Parallel()
	for name, end := range losses {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				holder, held := v.delayedMutex()
				_, one := v.delayedMutex()
				_, two := v.delayedMutex()
				g := lock(v, held)
				var waiting []*actors.Future[*actors.Grant]
				for i := range 6 {
					waiting = append(waiting, []*actors.Mutex{one, two}[i%2].Acquire(context.Background()))
					zktest.Eventually(v, timeLimit, func() bool { return len(v.nodes()) == i+2 }, "the request queues")
				}
				since := time.Now()
				end(v, holder, g)
				for i, f := range waiting {
					h := grantedAfter(v, since, delay, f)
					if i == 0 {
						<-time.After(time.Hour) // with a held marker of its own
						g.Release()             // which has ended long ago, and does not delete that marker
						since = since.Add(time.Hour)
					}
					if h.Err() != nil {
						v.Error(h.Err())
					}
					unlock(v, h)
				}
				v.clean()
			})
		})
	}
}

// A holder that has not noticed its loss releases. The held marker of the next holder stays.
func TestLockDelayLateRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		first, held := v.delayedMutex()
		second, mu := v.delayedMutex()
		_, other := v.delayedMutex()
		g := lock(v, held)
		v.Freeze(g.Session())
		_, err := second.Multi(within(v), &zk.DeleteRequest{Path: g.Node(), Version: -1})
		must(v, err)
		h := grantedAfter(v, time.Now(), delay, mu.Acquire(context.Background()))
		release := g.Release()
		v.Thaw(first.Session().ID)
		release.Wait(within(v))
		since := time.Now()
		v.Expire(h.Session())
		unlock(v, grantedAfter(v, since, delay, other.Acquire(context.Background())))
		h.Release()
		v.clean()
	})
}

// Requests that wait for the delay end as any waiting requests do, and the delay goes on for later
// requests.
func TestLockDelayOfEndedRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		_, held := v.delayedMutex()
		_, mu := v.delayedMutex()
		_, other := v.delayedMutex()
		v.loseSession(held)
		since := time.Now()
		_, err := mu.Lock(within(v), actors.Try())
		is(v, err, actors.ErrNotAcquired)
		ctx, cancel := context.WithCancel(context.Background())
		bound, timed := mu.Acquire(ctx), mu.Acquire(context.Background(), actors.WithTimeout(2*time.Second))
		f := mu.Acquire(context.Background())
		<-time.After(time.Second)
		pending(v, bound, timed, f)
		cancel()
		is(v, failure(v, bound), context.Canceled)
		f.Cancel()
		is(v, failure(v, f), actors.ErrCancelled)
		is(v, failure(v, timed), actors.ErrTimedOut)
		if took := time.Since(since); took != 2*time.Second {
			v.Errorf("timed out after %v", took)
		}
		_, err = mu.Lock(within(v), actors.Try(), actors.WithOwner("me"))
		is(v, err, actors.ErrNotAcquired)
		g := grantedAfter(v, since, delay, other.Acquire(context.Background()))
		unlock(v, g)
		unlock(v, lock(v, mu, actors.Try()))
		v.clean()
	})
}

// The Locks of a contender that waits for the delay are closed, or it loses its node or its
// session. Each contender waits for the delay before it holds.
func TestLockDelayOfLostWaiter(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		_, held := v.delayedMutex()
		closing, mu := v.delayedMutex()
		losing, other := v.delayedMutex()
		v.loseSession(held)
		f := mu.Acquire(context.Background())
		<-time.After(5 * time.Second)
		pending(v, f)
		must(v, closing.Close())
		is(v, failure(v, f), actors.ErrClosed)

		since := time.Now()
		owner := actors.WithOwner("me")
		f, g := other.Acquire(context.Background(), owner), other.Acquire(context.Background(), owner)
		<-time.After(5 * time.Second)
		pending(v, f, g)
		_, err := losing.Multi(within(v), &zk.DeleteRequest{Path: "/lock/" + strings.Fields(v.nodes()[0])[0], Version: -1})
		must(v, err)
		<-time.After(5 * time.Second)
		pending(v, f, g)
		if took := time.Since(since); took != 10*time.Second {
			v.Fatal(took)
		}
		v.Expire(losing.Session().ID)
		zktest.Eventually(v, time.Minute, func() bool { return losing.Session().State == messages.SessionState_CONNECTED && len(v.nodes()) == 1 }, "a new session")
		since = time.Now()
		unlock(v, result(v, f))
		unlock(v, result(v, g))
		if took := time.Since(since); took < delay-time.Second || took > delay {
			v.Errorf("granted %v after the new session", took)
		}
		v.clean()
	})
}

// Two clients hold in turn in spite of faults at the requests that create and delete held markers.
// No contender waits for the delay after a release.
func TestLockDelayFaults(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest,
		embedded.DelayReply, embedded.BlackHoleAfter} {
		t.Run(fmt.Sprint(action), func(t *testing.T) {
			sampled := sample.OneIn(t, 8)
			for nth := 1; nth <= 9; nth++ {
				for times := 1; times <= 3; times++ {
					if !sampled() {
						continue
					}
					fault := embedded.Fault{Op: embedded.OpAny, Path: "/lock" + heldMarker, Nth: nth, Times: times, Action: action, Delay: time.Second}
					if fired := lockDelayWithFault(t, fault); !fired && nth <= 4 || t.Failed() {
						t.Fatalf("fault %d, %d times: fired %v", nth, times, fired)
					}
				}
			}
		})
	}
}

func lockDelayWithFault(t *testing.T, fault embedded.Fault) (fired bool) {
	t.Helper()
	bubble(t, func(v *virtual) {
		injected := v.Inject(fault)
		_, one := v.delayedMutex()
		_, two := v.delayedMutex()
		lost := false
		for _, mu := range []*actors.Mutex{one, two, one} {
			since := time.Now()
			g, err := mu.Lock(context.Background())
			must(v, err)
			if took := time.Since(since); took >= delay && !lost {
				v.Errorf("granted after %v", took)
			}
			if err := g.Unlock(context.Background()); err != nil {
				is(v, err, actors.ErrSessionLost)
				lost = true
			}
		}
		fired = len(injected.Firings()) > 0
		injected.Remove()
		v.clean()
	})
	return fired
}

// Locks without the option neither wait nor make others wait.
func TestLockDelayBesideOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		_, held := v.delayedMutex()
		locks := v.locks()
		plain := locks.Mutex(v.path)
		_, mu := v.delayedMutex()
		unlock(v, lock(v, plain))
		unlock(v, grantedAfter(v, time.Now(), 0, mu.Acquire(context.Background())))
		v.loseSession(plain)
		unlock(v, grantedAfter(v, time.Now(), 0, mu.Acquire(context.Background())))
		v.loseSession(held)
		zktest.Eventually(v, time.Minute, func() bool { return locks.Session().State == messages.SessionState_CONNECTED }, "a new session")
		unlock(v, grantedAfter(v, time.Now(), 0, plain.Acquire(context.Background())))
		unlock(v, grantedAfter(v, time.Now(), delay, mu.Acquire(context.Background())))
		unlock(v, grantedAfter(v, time.Now(), 0, held.Acquire(context.Background())))
		v.clean()
	})
}

func TestLockDelayMessages(t *testing.T) {
	each(t, func(b *testLock) {
		const short = 3 * time.Second
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		one, two := b.locks(config), b.locks(config)
		first, second := pid(b, one.Mutex(b.path, actors.LockDelay(short))), pid(b, two.Mutex(b.path, actors.LockDelay(short)))
		alice.send(first, &messages.Acquire{RequestId: 1})
		alice.granted(1)
		bob.send(second, &messages.Acquire{RequestId: 1, Owner: "bob"})
		b.waitNodes(2)
		since := time.Now()
		b.Expire(b, one.Session().ID)
		bob.send(second, &messages.Acquire{RequestId: 2, Owner: "bob", WaitNanos: int64(time.Minute)})
		bob.send(second, &messages.Acquire{RequestId: 3, Owner: "bob", Try: true})
		bob.refused(3, messages.Reason_NOT_ACQUIRED)
		expectMessage[*messages.Lost](alice)
		node := bob.granted(1).GetNode()
		if took := time.Since(since); took < short {
			b.Errorf("granted after %v", took)
		}
		if again := bob.granted(2).GetNode(); again != node {
			b.Errorf("holds by %s and %s", node, again)
		}
		bob.send(second, &messages.Release{RequestId: 1, Owner: "bob"})
		bob.released(1, 1)
		bob.send(second, &messages.Cancel{RequestId: 2, Owner: "bob"}) // releases it
		bob.refused(2, messages.Reason_CANCELLED)
		b.waitNodes(0)
	})
}

// A process that may not create the held marker does not get the lock.
func TestLockDelayMayNotCreateHeldMarker(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		_, err := conn.Create(b.path, nil, 0, zk.WorldACL(zk.PermAll))
		must(b, err)
		_, err = conn.Create(b.path+"/lock", nil, 0, zk.WorldACL(zk.PermAll))
		must(b, err)
		_, err = conn.SetACL(b.path, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
		must(b, err)
		_, err = b.locks().Mutex(b.path+"/lock", actors.LockDelay(delay)).Lock(within(b))
		is(b, err, actors.ErrNoAuth)
		if err != nil && !strings.Contains(err.Error(), "CREATE is not granted on "+b.path) {
			b.Error(err)
		}
		b.waitNodes(0, "/lock")
		_, err = conn.SetACL(b.path, zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		must(b, conn.Delete(b.path+"/lock", -1))
	})
}

func TestLockDelayOptions(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		for _, d := range []time.Duration{0, -time.Second, time.Minute + 1, time.Hour} {
			_, err := locks.Mutex(b.path, actors.LockDelay(d)).Lock(within(b))
			is(b, err, actors.ErrInvalid)
			if err != nil && !strings.Contains(err.Error(), d.String()) {
				b.Error(err)
			}
		}
		_, err := locks.Mutex(b.path, actors.LockDelay(delay), actors.LockDelay(2*delay)).Lock(within(b))
		is(b, err, actors.ErrInvalid)
		_, err = locks.RWMutex(b.path, actors.LockDelay(delay)).Read().Lock(within(b))
		is(b, err, actors.ErrInvalid)
		g := lock(b, locks.Mutex(b.path, actors.LockDelay(delay)))
		for _, options := range [][]actors.LockOption{{actors.LockDelay(2 * delay)}, nil} {
			_, err = locks.Mutex(b.path, options...).Lock(within(b))
			is(b, err, actors.ErrInvalid)
		}
		unlock(b, g)
	})
}

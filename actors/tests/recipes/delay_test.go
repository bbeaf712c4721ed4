package recipes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const delay = 15 * time.Second

// delayedMutex returns the lock with a lock-delay, on a connection of its own.
func delayedMutex(v *locktest.Virtual) (*actors.Locks, *actors.Mutex) {
	v.Helper()
	locks := v.Locks()
	return locks, locks.Mutex("/lock", actors.LockDelay(delay))
}

// loseSession acquires the lock, whose session then ends.
func loseSession(v *locktest.Virtual, mu *actors.Mutex) {
	v.Helper()
	g := locktest.Lock(v, mu)
	v.Expire(g.Session())
	v.Cleanup(func() { g.Release() })
}

// grantedAfter checks the time until f is granted, and returns the grant.
func grantedAfter(t testing.TB, since time.Time, want time.Duration, f *actors.Future[*actors.Grant]) *actors.Grant {
	t.Helper()
	g, err := f.Wait(t.Context())
	locktest.Must(t, err)
	if took := time.Since(since); took != want {
		t.Errorf("granted after %v, want %v", took, want)
	}
	return g
}

// The held marker exists while the lock is held, and the next contender then holds at once.
func TestLockDelayAfterRelease(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		one, two := b.Locks().Mutex(b.LockPath, actors.LockDelay(time.Minute)), b.Locks().Mutex(b.LockPath, actors.LockDelay(time.Minute))
		last := actors.Token{}
		for i := range 6 {
			mu := []*actors.Mutex{one, two, two}[i%3]
			g := locktest.Lock(b, mu)
			if data, _, err := conn.Get(b.LockPath + locktest.HeldMarker); err != nil || b.LockPath+"/"+string(data) != g.Node() {
				b.Errorf("held marker %q, %v while %s holds", data, err, g.Node())
			}
			locktest.ExpectIncreasing(b, last, g.Token())
			last = g.Token()
			next := []*actors.Future[*actors.Grant]{one.Acquire(locktest.Within(b)), two.Acquire(locktest.Within(b))}
			b.WaitNodes(3)
			_, err := mu.Lock(locktest.Within(b), actors.Try())
			locktest.Is(b, err, actors.ErrNotAcquired)
			locktest.Pending(b, next...)
			locktest.Unlock(b, g)
			b.InTurn(func(*actors.Grant) {}, next...)
		}
		if ok, _, err := conn.Exists(b.LockPath + locktest.HeldMarker); ok || err != nil {
			b.Errorf("the held marker is there: %v, %v", ok, err)
		}
	})
}

// The held marker exists until the owner's last release.
func TestLockDelayReentry(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		mu, me := b.Locks().Mutex(b.LockPath, actors.LockDelay(time.Minute)), actors.WithOwner("me")
		f := mu.Acquire(locktest.Within(b), me) // perhaps before the held marker is made
		g, h := locktest.Lock(b, mu, me), locktest.Result(b, f)
		locktest.Unlock(b, g)
		if data, _, err := conn.Get(b.LockPath + locktest.HeldMarker); err != nil || b.LockPath+"/"+string(data) != h.Node() {
			b.Errorf("held marker %q, %v", data, err)
		}
		locktest.Unlock(b, h)
		if ok, _, err := conn.Exists(b.LockPath + locktest.HeldMarker); ok || err != nil {
			b.Errorf("the held marker is there: %v, %v", ok, err)
		}
	})
}

// losses are the ways in which a grant ends without a release.
var losses = map[string]func(v *locktest.Virtual, locks *actors.Locks, g *actors.Grant){
	"session expired": func(v *locktest.Virtual, _ *actors.Locks, g *actors.Grant) { v.Expire(g.Session()) },
	"locks closed":    func(v *locktest.Virtual, locks *actors.Locks, _ *actors.Grant) { locktest.Must(v, locks.Close()) },
	"node deleted": func(v *locktest.Virtual, locks *actors.Locks, g *actors.Grant) {
		_, err := locks.Multi(locktest.Within(v), &zk.DeleteRequest{Path: g.Node(), Version: -1})
		locktest.Must(v, err)
	},
}

// The first waiter waits for the delay, and the waiters behind it do not.
func TestLockDelayAfterLoss(t *testing.T) {
	t.Parallel()
	for name, end := range losses {
		t.Run(name, func(t *testing.T) {
			if name == "node deleted" {
				locktest.NeedsZooKeeper(t, "transactions of the program's own")
			}
			locktest.Bubble(t, func(v *locktest.Virtual) {
				holder, held := delayedMutex(v)
				_, one := delayedMutex(v)
				_, two := delayedMutex(v)
				g := locktest.Lock(v, held)
				var waiting []*actors.Future[*actors.Grant]
				for i := range 6 {
					waiting = append(waiting, []*actors.Mutex{one, two}[i%2].Acquire(context.Background()))
					zktest.Eventually(v, zktest.TimeLimit, func() bool { return len(v.LockNodes()) == i+2 }, "the request queues")
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
					locktest.Unlock(v, h)
				}
				v.Clean()
			})
		})
	}
}

// A holder that has not noticed its loss releases. The held marker of the next holder stays.
func TestLockDelayLateRelease(t *testing.T) {
	locktest.NeedsZooKeeper(t, "transactions of the program's own")
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		first, held := delayedMutex(v)
		second, mu := delayedMutex(v)
		_, other := delayedMutex(v)
		g := locktest.Lock(v, held)
		v.Freeze(g.Session())
		_, err := second.Multi(locktest.Within(v), &zk.DeleteRequest{Path: g.Node(), Version: -1})
		locktest.Must(v, err)
		h := grantedAfter(v, time.Now(), delay, mu.Acquire(context.Background()))
		release := g.Release()
		v.Thaw(first.Session().ID)
		release.Wait(locktest.Within(v))
		since := time.Now()
		v.Expire(h.Session())
		locktest.Unlock(v, grantedAfter(v, since, delay, other.Acquire(context.Background())))
		h.Release()
		v.Clean()
	})
}

// Requests that wait for the delay end as any waiting requests do, and the delay goes on for later
// requests.
func TestLockDelayOfEndedRequests(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		_, held := delayedMutex(v)
		_, mu := delayedMutex(v)
		_, other := delayedMutex(v)
		loseSession(v, held)
		since := time.Now()
		_, err := mu.Lock(locktest.Within(v), actors.Try())
		locktest.Is(v, err, actors.ErrNotAcquired)
		ctx, cancel := context.WithCancel(context.Background())
		bound, timed := mu.Acquire(ctx), mu.Acquire(context.Background(), actors.WithTimeout(2*time.Second))
		f := mu.Acquire(context.Background())
		<-time.After(time.Second)
		locktest.Pending(v, bound, timed, f)
		cancel()
		locktest.Is(v, locktest.Failure(v, bound), context.Canceled)
		f.Cancel()
		locktest.Is(v, locktest.Failure(v, f), actors.ErrCancelled)
		locktest.Is(v, locktest.Failure(v, timed), actors.ErrTimedOut)
		if took := time.Since(since); took != 2*time.Second {
			v.Errorf("timed out after %v", took)
		}
		_, err = mu.Lock(locktest.Within(v), actors.Try(), actors.WithOwner("me"))
		locktest.Is(v, err, actors.ErrNotAcquired)
		g := grantedAfter(v, since, delay, other.Acquire(context.Background()))
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Lock(v, mu, actors.Try()))
		v.Clean()
	})
}

// The Locks of a contender that waits for the delay are closed, or it loses its node or its
// session. Each contender waits for the delay before it holds.
func TestLockDelayOfLostWaiter(t *testing.T) {
	locktest.NeedsZooKeeper(t, "transactions of the program's own")
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		_, held := delayedMutex(v)
		closing, mu := delayedMutex(v)
		losing, other := delayedMutex(v)
		loseSession(v, held)
		f := mu.Acquire(context.Background())
		<-time.After(5 * time.Second)
		locktest.Pending(v, f)
		locktest.Must(v, closing.Close())
		locktest.Is(v, locktest.Failure(v, f), actors.ErrClosed)

		since := time.Now()
		owner := actors.WithOwner("me")
		f, g := other.Acquire(context.Background(), owner), other.Acquire(context.Background(), owner)
		<-time.After(5 * time.Second)
		locktest.Pending(v, f, g)
		_, err := losing.Multi(locktest.Within(v), &zk.DeleteRequest{Path: "/lock/" + strings.Fields(v.LockNodes()[0])[0], Version: -1})
		locktest.Must(v, err)
		<-time.After(5 * time.Second)
		locktest.Pending(v, f, g)
		if took := time.Since(since); took != 10*time.Second {
			v.Fatal(took)
		}
		v.Expire(losing.Session().ID)
		zktest.Eventually(v, time.Minute, func() bool {
			return losing.Session().State == messages.SessionState_CONNECTED && len(v.LockNodes()) == 1
		}, "a new session")
		since = time.Now()
		locktest.Unlock(v, locktest.Result(v, f))
		locktest.Unlock(v, locktest.Result(v, g))
		if took := time.Since(since); took < delay-time.Second || took > delay {
			v.Errorf("granted %v after the new session", took)
		}
		v.Clean()
	})
}

// Two clients hold in turn in spite of faults at the requests that create and delete held markers.
// No contender waits for the delay after a release. Where a broken connection ends the session the
// next one waits for the end of that session's node and, if a held marker may have been made in it,
// for the delay: the server does not tell a process that made the marker from one that held. The
// marker of a session that was lost at last stays until the next holder releases.
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
					fault := embedded.Fault{Op: embedded.OpAny, Path: "/lock" + locktest.HeldMarker, Nth: nth, Times: times, Action: action, Delay: time.Second}
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
	locktest.Bubble(t, func(v *locktest.Virtual) {
		injected := v.Inject(fault)
		_, one := delayedMutex(v)
		_, two := delayedMutex(v)
		lost := 0 // the last holder has lost its session
		turn := func(mu *actors.Mutex) {
			since, before := time.Now(), len(injected.Firings())
			g, err := mu.Lock(context.Background())
			locktest.Must(v, err)
			took := time.Since(since)
			if !v.Resumes() {
				lost += len(injected.Firings()) - before
			}
			if most := delay + time.Duration(lost)*(locktest.SessionTimeout+time.Second); took >= most {
				v.Errorf("granted after %v; %d sessions were lost", took, lost)
			}
			lost = 0
			if err := g.Unlock(context.Background()); err != nil {
				locktest.Is(v, err, actors.ErrSessionLost)
				lost = 1
			}
		}
		for _, mu := range []*actors.Mutex{one, two, one} {
			turn(mu)
		}
		fired = len(injected.Firings()) > 0
		injected.Remove()
		if lost > 0 {
			turn(two)
		}
		v.Clean()
	})
	return fired
}

// Locks without the option neither wait nor make others wait.
func TestLockDelayBesideOthers(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		_, held := delayedMutex(v)
		locks := v.Locks()
		plain := locks.Mutex(v.LockPath)
		_, mu := delayedMutex(v)
		locktest.Unlock(v, locktest.Lock(v, plain))
		locktest.Unlock(v, grantedAfter(v, time.Now(), 0, mu.Acquire(context.Background())))
		lost := locks.Session().ID
		loseSession(v, plain)
		locktest.Unlock(v, grantedAfter(v, time.Now(), 0, mu.Acquire(context.Background())))
		loseSession(v, held)
		zktest.Eventually(v, time.Minute, func() bool {
			s := locks.Session()
			return s.State == messages.SessionState_CONNECTED && s.ID != lost
		}, "a new session")
		locktest.Unlock(v, grantedAfter(v, time.Now(), 0, plain.Acquire(context.Background())))
		locktest.Unlock(v, grantedAfter(v, time.Now(), delay, mu.Acquire(context.Background())))
		locktest.Unlock(v, grantedAfter(v, time.Now(), 0, held.Acquire(context.Background())))
		v.Clean()
	})
}

func TestLockDelayMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		const short = 3 * time.Second
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		one, two := b.Locks(config), b.Locks(config)
		first, second := locktest.PID(b, one.Mutex(b.LockPath, actors.LockDelay(short))), locktest.PID(b, two.Mutex(b.LockPath, actors.LockDelay(short)))
		alice.Send(first, &messages.Acquire{RequestId: 1})
		alice.Granted(1)
		bob.Send(second, &messages.Acquire{RequestId: 1, Owner: "bob"})
		b.WaitNodes(2)
		since := time.Now()
		b.Expire(b, one.Session().ID)
		bob.Send(second, &messages.Acquire{RequestId: 2, Owner: "bob", WaitNanos: int64(time.Minute)})
		bob.Send(second, &messages.Acquire{RequestId: 3, Owner: "bob", Try: true})
		bob.Refused(3, messages.Reason_NOT_ACQUIRED)
		locktest.ExpectMessage[*messages.Lost](alice)
		node := bob.Granted(1).GetNode()
		if took := time.Since(since); took < short {
			b.Errorf("granted after %v", took)
		}
		if again := bob.Granted(2).GetNode(); again != node {
			b.Errorf("holds by %s and %s", node, again)
		}
		bob.Send(second, &messages.Release{RequestId: 1, Owner: "bob"})
		bob.Released(1, 1)
		bob.Send(second, &messages.Cancel{RequestId: 2, Owner: "bob"}) // releases it
		bob.Refused(2, messages.Reason_CANCELLED)
		b.WaitNodes(0)
	})
}

// A process that may not create the held marker does not get the lock.
func TestLockDelayMayNotCreateHeldMarker(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		_, err := conn.Create(b.LockPath, nil, 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		_, err = conn.Create(b.LockPath+"/lock", nil, 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		_, err = conn.SetACL(b.LockPath, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
		locktest.Must(b, err)
		_, err = b.Locks().Mutex(b.LockPath+"/lock", actors.LockDelay(delay)).Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoAuth)
		if err != nil && !strings.Contains(err.Error(), "CREATE is not granted on "+b.LockPath) {
			b.Error(err)
		}
		b.WaitNodes(0, "/lock")
		_, err = conn.SetACL(b.LockPath, zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		locktest.Must(b, conn.Delete(b.LockPath+"/lock", -1))
	})
}

// All handles of a process have the same lock-delay.
func TestLockDelayOptions(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath, actors.LockDelay(delay)))
		for _, options := range [][]actors.LockOption{{actors.LockDelay(2 * delay)}, nil} {
			_, err := locks.Mutex(b.LockPath, options...).Lock(locktest.Within(b))
			locktest.Is(b, err, actors.ErrInvalid)
		}
		locktest.Unlock(b, g)
	})
}

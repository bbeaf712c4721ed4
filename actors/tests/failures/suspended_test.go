package failures

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// expectSuspended checks that an error names the missing connection, since when and why.
func expectSuspended(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, actors.ErrSuspended) || !strings.Contains(err.Error(), "no answer from ZooKeeper since") {
		t.Errorf("%s: %v", what, err)
	}
}

// A Try does not wait for a connection, whether the connection was lost before the Try or while it
// waits for an answer.
func TestTryWithoutConnection(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		proxy := zktest.Proxy(b, b.Addr())
		config, all := locktest.OwnerActors(b.T, 2)
		locks := locktest.Connect(b.T, proxy.Addr(), config)
		for _, r := range locktest.Exclusive() { // which makes the directories
			locktest.Unlock(b, locktest.Lock(b, b.HandleOf(locks, r)))
		}
		b.WaitNoNode()
		for _, waiters := range []bool{false, true} {
			proxy.BlackHole(true)
			tries, waiting := map[string]*actors.Future[*actors.Grant]{}, map[string]*actors.Future[*actors.Grant]{}
			for _, r := range locktest.Exclusive() {
				tries[r.Name] = b.HandleOf(locks, r).Acquire(locktest.Within(b), actors.Try())
				if waiters {
					waiting[r.Name] = b.HandleOf(locks, r).Acquire(locktest.Within(b))
				}
			}
			proxy.Refuse(true)
			proxy.Cut()
			locktest.WaitState(b, locks, messages.SessionState_SUSPENDED)
			for _, r := range locktest.Exclusive() {
				expectSuspended(b, r.Name, locktest.Failure(b, tries[r.Name]))
				_, err := b.HandleOf(locks, r).Lock(locktest.Within(b), actors.Try())
				if !waiters || !errors.Is(err, actors.ErrNotAcquired) { // by the waiter of this process
					expectSuspended(b, r.Name, err)
				}
			}
			if !waiters {
				all[0].Send(locktest.PID(b, locks.Mutex(b.LockPath)), &messages.Acquire{RequestId: 1, Try: true})
				all[0].Refused(1, messages.Reason_DISCONNECTED)
			}
			proxy.Refuse(false)
			proxy.BlackHole(false)
			for _, f := range waiting { // which go on
				locktest.Unlock(b, locktest.Result(b, f))
			}
			locktest.WaitState(b, locks, messages.SessionState_CONNECTED)
			b.WaitNoNode()
		}
		for _, r := range locktest.Exclusive() {
			locktest.Unlock(b, locktest.Lock(b, b.HandleOf(locks, r), actors.Try()))
		}
		b.WaitNoNode()
	})
}

// A request that ends without the lock reports whether it waited for ZooKeeper or for another
// holder.
func TestReasonOfAWait(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption() // a lost session holds its locks for a minute
		proxy := zktest.Proxy(b, b.Addr())
		config, all := locktest.OwnerActors(b.T, 1)
		locks, other := locktest.Connect(b.T, proxy.Addr(), config), b.Locks()
		mu := locks.Mutex(b.LockPath)
		g := locktest.Lock(b, other.Mutex(b.LockPath))
		shortContext := func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			b.Cleanup(cancel)
			return ctx
		}
		requests := map[string]func() error{
			"Lock":    func() error { return locktest.ErrOf(mu.Lock(shortContext())) },
			"Acquire": func() error { return locktest.Failure(b, mu.Acquire(shortContext())) },
			"WithTimeout": func() error {
				return locktest.ErrOf(mu.Lock(locktest.Within(b), actors.WithTimeout(20*time.Millisecond)))
			},
			"message": func() error {
				all[0].Send(locktest.PID(b, mu), &messages.Acquire{RequestId: 1, WaitNanos: int64(20 * time.Millisecond)})
				return locktest.ExpectMessage[*messages.Refused](all[0])
			},
		}
		wants := map[string]error{"Lock": context.DeadlineExceeded, "Acquire": context.DeadlineExceeded,
			"WithTimeout": actors.ErrTimedOut, "message": actors.ErrTimedOut}
		for name, request := range requests {
			zktest.Eventually(b, zktest.TimeLimit, func() bool { // on a busy machine the server may be late
				err := request()
				locktest.Is(b, err, wants[name])
				return !errors.Is(err, actors.ErrSuspended)
			}, "%s waits for the other holder", name)
		}
		proxy.Refuse(true)
		proxy.Cut()
		locktest.WaitState(b, locks, messages.SessionState_SUSPENDED)
		for name, request := range requests {
			err := request()
			expectSuspended(b, name, err)
			locktest.Is(b, err, wants[name])
		}
		proxy.Refuse(false)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

// A request that ends while the server does not answer reports that, before the connection ends.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		locktest.Unlock(v, locktest.Lock(v, mu))
		v.Pause()
		ctx, cancel := context.WithTimeout(v.Context(), time.Second)
		defer cancel()
		_, err := mu.Lock(ctx)
		if locks.Session().State != messages.SessionState_CONNECTED {
			v.Error("the connection has ended, so the test shows nothing")
		}
		expectSuspended(v, "Lock", err)
		locktest.Is(v, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "does not answer") {
			v.Error(err)
		}
		v.Resume()
		v.Clean()
	})
}

// The calls that send a request end when the connection is lost, and fail at once without one.
func TestCallsWithoutConnection(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption()
		proxy := zktest.Proxy(b, b.Addr())
		locks := locktest.Connect(b.T, proxy.Addr())
		mu, s := locks.Mutex(b.LockPath), locks.Semaphore(b.LockPath+"-s", 2)
		count := locks.SharedCount(b.LockPath+"-count", 1)
		g := locktest.Lock(b, mu)
		calls := map[string]func() error{
			"Participants":  func() error { return locktest.ErrOf(mu.Participants(locktest.Within(b))) },
			"RevokeHolders": func() error { return locktest.ErrOf(mu.RevokeHolders(locktest.Within(b), 0)) },
			"Revoke":        func() error { return locktest.ErrOf(locks.Revoke(locktest.Within(b), g.Node(), 0)) },
			"Verify":        func() error { return g.Verify(locktest.Within(b)) },
			"VerifyToken":   func() error { return locks.VerifyToken(locktest.Within(b), g.Node(), g.Token()) },
			"Multi": func() error {
				return locktest.ErrOf(locks.Multi(locktest.Within(b), g.Guard(&zk.DeleteRequest{Path: b.LockPath + "/none"})...))
			},
			"Remaining": func() error { return locktest.ErrOf(s.Remaining(locktest.Within(b))) },
			"Get":       func() error { return locktest.ErrOf(count.Get(locktest.Within(b))) },
			"Set":       func() error { return count.Set(locktest.Within(b), 2) },
			"TrySet":    func() error { return locktest.ErrOf(count.TrySet(locktest.Within(b), actors.Count{}, 2)) },
		}
		proxy.BlackHole(true)
		results := make(chan error, len(calls))
		begun := maps.Clone(calls)
		delete(begun, "Revoke") // which repeats a lost request until the session is lost
		for name, call := range begun {
			go func() {
				err := call()
				if !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) { // sent, without an answer
					expectSuspended(b, name, err)
				}
				results <- err
			}()
		}
		for range begun { // some calls end with the connection, and later ones fail at once
			if len(results) == 0 {
				proxy.Refuse(true)
				proxy.Cut()
			}
			<-results
		}
		locktest.WaitState(b, locks, messages.SessionState_SUSPENDED)
		for name, call := range calls {
			expectSuspended(b, name, call())
		}
		proxy.Refuse(false)
		proxy.BlackHole(false)
		locktest.WaitState(b, locks, messages.SessionState_CONNECTED)
		locktest.Unlock(b, g)
		b.WaitNodes(0)
		conn := b.Client(b)
		if err := conn.Delete(b.LockPath+"-count", -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			b.Error(err)
		}
	})
}

package actors_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
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
	each(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		config, all := testActors(b.T, 2)
		locks := connect(b.T, proxy.Addr(), config)
		for _, r := range exclusive() { // which makes the directories
			unlock(b, lock(b, b.handle(locks, r)))
		}
		b.waitNoNode()
		for _, waiters := range []bool{false, true} {
			proxy.BlackHole(true)
			tries, waiting := map[string]*actors.Future[*actors.Grant]{}, map[string]*actors.Future[*actors.Grant]{}
			for _, r := range exclusive() {
				tries[r.name] = b.handle(locks, r).Acquire(within(b), actors.Try())
				if waiters {
					waiting[r.name] = b.handle(locks, r).Acquire(within(b))
				}
			}
			proxy.Refuse(true)
			proxy.Cut()
			waitState(b, locks, messages.SessionState_SUSPENDED)
			for _, r := range exclusive() {
				expectSuspended(b, r.name, failure(b, tries[r.name]))
				_, err := b.handle(locks, r).Lock(within(b), actors.Try())
				if !waiters || !errors.Is(err, actors.ErrNotAcquired) { // by the waiter of this process
					expectSuspended(b, r.name, err)
				}
			}
			if !waiters {
				all[0].send(pid(b, locks.Mutex(b.path)), &messages.Acquire{RequestId: 1, Try: true})
				all[0].refused(1, messages.Reason_DISCONNECTED)
			}
			proxy.Refuse(false)
			proxy.BlackHole(false)
			for _, f := range waiting { // which go on
				unlock(b, result(b, f))
			}
			waitState(b, locks, messages.SessionState_CONNECTED)
			b.waitNoNode()
		}
		for _, r := range exclusive() {
			unlock(b, lock(b, b.handle(locks, r), actors.Try()))
		}
		b.waitNoNode()
	})
}

// A request that ends without the lock reports whether it waited for ZooKeeper or for another
// holder.
func TestReasonOfAWait(t *testing.T) {
	each(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		config, all := testActors(b.T, 1)
		locks, other := connect(b.T, proxy.Addr(), config), b.locks()
		mu := locks.Mutex(b.path)
		g := lock(b, other.Mutex(b.path))
		shortContext := func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			b.Cleanup(cancel)
			return ctx
		}
		requests := map[string]func() error{
			"Lock":        func() error { return errOf(mu.Lock(shortContext())) },
			"Acquire":     func() error { return failure(b, mu.Acquire(shortContext())) },
			"WithTimeout": func() error { return errOf(mu.Lock(within(b), actors.WithTimeout(20*time.Millisecond))) },
			"message": func() error {
				all[0].send(pid(b, mu), &messages.Acquire{RequestId: 1, WaitNanos: int64(20 * time.Millisecond)})
				return expectMessage[*messages.Refused](all[0])
			},
		}
		wants := map[string]error{"Lock": context.DeadlineExceeded, "Acquire": context.DeadlineExceeded,
			"WithTimeout": actors.ErrTimedOut, "message": actors.ErrTimedOut}
		for name, request := range requests {
			if err := request(); !errors.Is(err, wants[name]) || errors.Is(err, actors.ErrSuspended) {
				b.Errorf("%s, held by another: %v", name, err)
			}
		}
		proxy.Refuse(true)
		proxy.Cut()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		for name, request := range requests {
			err := request()
			expectSuspended(b, name, err)
			is(b, err, wants[name])
		}
		proxy.Refuse(false)
		unlock(b, g)
		unlock(b, lock(b, mu))
	})
}

// A request that ends while the server does not answer reports that, before the connection ends.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		unlock(v, lock(v, mu))
		v.Pause()
		ctx, cancel := context.WithTimeout(v.Context(), time.Second)
		defer cancel()
		_, err := mu.Lock(ctx)
		if locks.Session().State != messages.SessionState_CONNECTED {
			v.Error("the connection has ended, so the test shows nothing")
		}
		expectSuspended(v, "Lock", err)
		is(v, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "does not answer") {
			v.Error(err)
		}
		v.Resume()
		v.clean()
	})
}

// The calls that send a request end when the connection is lost, and fail at once without one.
func TestCallsWithoutConnection(t *testing.T) {
	each(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr())
		mu, s := locks.Mutex(b.path), locks.Semaphore(b.path+"-s", 2)
		count := locks.SharedCount(b.path+"-count", 1)
		g := lock(b, mu)
		calls := map[string]func() error{
			"Participants":  func() error { return errOf(mu.Participants(within(b))) },
			"RevokeHolders": func() error { return errOf(mu.RevokeHolders(within(b), 0)) },
			"Revoke":        func() error { return errOf(locks.Revoke(within(b), g.Node(), 0)) },
			"Verify":        func() error { return g.Verify(within(b)) },
			"VerifyToken":   func() error { return locks.VerifyToken(within(b), g.Node(), g.Token()) },
			"Multi": func() error {
				return errOf(locks.Multi(within(b), g.Guard(&zk.DeleteRequest{Path: b.path + "/none"})...))
			},
			"Remaining": func() error { return errOf(s.Remaining(within(b))) },
			"Get":       func() error { return errOf(count.Get(within(b))) },
			"Set":       func() error { return count.Set(within(b), 2) },
			"TrySet":    func() error { return errOf(count.TrySet(within(b), actors.Count{}, 2)) },
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
		waitState(b, locks, messages.SessionState_SUSPENDED)
		for name, call := range calls {
			expectSuspended(b, name, call())
		}
		proxy.Refuse(false)
		proxy.BlackHole(false)
		waitState(b, locks, messages.SessionState_CONNECTED)
		unlock(b, g)
		b.waitNodes(0)
		conn := b.Client(b)
		if err := conn.Delete(b.path+"-count", -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			b.Error(err)
		}
	})
}

package actors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		alice.send(lock, &messages.Acquire{RequestId: 1, Data: []byte("alice")})
		g := alice.granted(1)
		if g.GetPath() != b.path || g.GetSessionId() != locks.Session().ID || len(b.nodes()) != 1 || g.GetNode() != b.nodes()[0] {
			b.Errorf("%v; nodes %v", g, b.nodes())
		}
		data, stat, err := b.Client(b).Get(b.path + "/" + g.GetNode())
		if err != nil || string(data) != "alice" || stat.Czxid != g.GetCzxid() {
			b.Errorf("%q, %+v, %v", data, stat, err)
		}
		bob.send(lock, &messages.Acquire{RequestId: 1, Try: true})
		bob.refused(1, messages.Reason_NOT_ACQUIRED)
		bob.send(lock, &messages.Acquire{RequestId: 2, WaitNanos: int64(20 * time.Millisecond)})
		bob.refused(2, messages.Reason_TIMED_OUT)
		bob.send(lock, &messages.Acquire{RequestId: 3})
		bob.send(lock, &messages.Cancel{RequestId: 3})
		bob.refused(3, messages.Reason_CANCELLED)
		bob.send(lock, &messages.Cancel{RequestId: 3})  // of an ended request: no answer
		bob.send(lock, &messages.Release{RequestId: 1}) // of another owner
		bob.refused(1, messages.Reason_NOT_HELD)
		bob.send(lock, &messages.Acquire{RequestId: 4})
		b.waitNodes(2)
		alice.send(lock, &messages.Release{RequestId: 1})
		if m := bob.granted(4); m.GetCzxid() <= g.GetCzxid() {
			b.Errorf("%v after %v", m, g)
		}
		alice.released(1, 0)
		alice.send(lock, &messages.Release{RequestId: 1})
		alice.refused(1, messages.Reason_NOT_HELD)
		// A request of Go code waits behind a request of an actor.
		f := locks.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		bob.send(lock, &messages.Release{RequestId: 4})
		bob.released(4, 0)
		unlock(b, result(b, f))
	})
}

// Cancel releases a granted request.
func TestCancelGranted(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		lock := pid(b, b.mutex(config))
		all[0].send(lock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(lock, &messages.Cancel{RequestId: 1})
		all[0].refused(1, messages.Reason_CANCELLED)
		b.waitNodes(0)
		all[0].send(lock, &messages.Release{RequestId: 1})
		all[0].refused(1, messages.Reason_NOT_HELD)
	})
}

// A named owner is one owner, whichever actor sends its messages.
func TestNamedOwner(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		lock := pid(b, b.mutex(config))
		alice.send(lock, &messages.Acquire{RequestId: 1, Owner: "both"})
		first := alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 2, Owner: "both", Try: true})
		if again := bob.granted(2); again.GetNode() != first.GetNode() {
			b.Errorf("re-entry: %v", again)
		}
		bob.send(lock, &messages.Acquire{RequestId: 1, Owner: "both"})
		bob.refused(1, messages.Reason_INVALID)
		bob.send(lock, &messages.Release{RequestId: 1})
		bob.refused(1, messages.Reason_NOT_HELD)
		bob.send(lock, &messages.Release{RequestId: 1, Owner: "others"})
		bob.refused(1, messages.Reason_NOT_HELD)
		bob.send(lock, &messages.Release{RequestId: 1, Owner: "both"})
		bob.released(1, 1)
		alice.send(lock, &messages.Release{RequestId: 2, Owner: "both"})
		alice.released(2, 0)
	})
}

func TestInvalidMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice := all[0]
		var log logs
		lock := pid(b, b.mutex(config, log.config))
		alice.send(lock, &messages.Acquire{RequestId: 7})
		alice.granted(7)
		for range 2 {
			alice.send(lock, &messages.Acquire{RequestId: 7})
			if m := alice.refused(7, messages.Reason_INVALID); !strings.Contains(m.GetDetail(), "7") {
				b.Errorf("%v", m)
			}
		}
		alice.send(lock, &messages.Acquire{RequestId: 8, WaitNanos: -1})
		if m := alice.refused(8, messages.Reason_INVALID); !strings.Contains(m.GetDetail(), "-1") {
			b.Errorf("%v", m)
		}
		alice.system.Root.Send(lock, &messages.Acquire{RequestId: 9}) // without a sender
		alice.system.Root.Send(lock, &messages.Cancel{RequestId: 7})
		alice.system.Root.Send(lock, &messages.Release{RequestId: 7})
		alice.send(lock, "what is this?")
		alice.send(lock, &messages.Acquire{RequestId: 10, Try: true})
		alice.refused(10, messages.Reason_NOT_ACQUIRED)
		if len(log.with("string")) == 0 {
			b.Error("the log does not say that the message is not known")
		}
		alice.send(lock, &messages.Release{RequestId: 7})
		alice.released(7, 0)
		alice.send(lock, &messages.Acquire{RequestId: 7}) // the number is free again
		alice.granted(7)
		alice.send(lock, &messages.Release{RequestId: 7})
		alice.released(7, 0)
	})
}

// An Acquire without a sender does not hold the lock, though the lock is free.
func TestAcquireWithoutSender(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		locks := b.locks(config)
		mu := locks.Mutex(b.path)
		lock := pid(b, mu)
		all[0].system.Root.Send(lock, &messages.Acquire{RequestId: 1})
		all[0].system.Root.Send(lock, &messages.Acquire{RequestId: 1, Owner: "me"})
		g, err := mu.Lock(within(b), actors.Try())
		must(b, err)
		if n := b.nodes(); len(n) != 1 {
			b.Errorf("nodes %v", n)
		}
		unlock(b, g)
	})
}

func TestLostMessage(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		alice.send(lock, &messages.Acquire{RequestId: 1, Owner: "alice"})
		alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 1})
		b.waitNodes(2)
		b.Expire(b, locks.Session().ID)
		if m := expectMessage[*messages.Lost](alice); m.GetRequestId() != 1 || m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("%v", m)
		}
		bob.granted(1)
		alice.send(lock, &messages.Acquire{RequestId: 2, Owner: "alice"})
		if m := expectMessage[*messages.Refused](alice); m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("re-entry on a lost grant: %v", m)
		}
		alice.send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		if m := expectMessage[*messages.Refused](alice); m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("release of a lost grant: %v", m)
		}
		alice.send(lock, &messages.Acquire{RequestId: 3, Owner: "alice"})
		b.waitNodes(2)
		bob.send(lock, &messages.Release{RequestId: 1})
		bob.released(1, 0)
		alice.granted(3)
		alice.send(lock, &messages.Release{RequestId: 3, Owner: "alice"})
		alice.released(3, 0)
	})
}

func TestCloseMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		alice.send(lock, &messages.Acquire{RequestId: 1})
		alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 1})
		b.waitNodes(2)
		must(b, locks.Close())
		if m := expectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_CLOSED {
			b.Errorf("%v", m)
		}
		bob.refused(1, messages.Reason_CLOSED)
	})
}

// The actor of a PID does not end, though the lock is idle.
func TestPinnedPID(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		locks := b.locks(config, idle(5*time.Millisecond))
		mu, other := locks.Mutex(b.path), locks.Mutex(b.path+"-other")
		self := pid(b, mu)
		if again := pid(b, locks.Mutex(b.path)); !again.Equal(self) {
			b.Errorf("%v, then %v", self, again)
		}
		unlock(b, lock(b, other))
		zktest.Eventually(b, timeLimit, func() bool { return len(actors.Paths(locks)) == 1 }, "the other lock's actor ends")
		all[0].send(self, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(self, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
	})
}

// A second Release, or a Cancel after it, releases nothing, and does not suppress the answer to the
// first one.
func TestReleaseTwice(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice, locks := all[0], b.locks(config)
		for id, lock := range []interface{ PID() (*actor.PID, error) }{
			locks.Mutex(b.path), locks.Semaphore(b.path+"-s", 2), locks.MultiLock(locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b")),
		} {
			id := uint64(id)
			to, err := lock.PID()
			must(b, err)
			alice.send(to, &messages.Acquire{RequestId: id})
			alice.granted(id)
			alice.send(to, &messages.Release{RequestId: id})
			alice.send(to, &messages.Release{RequestId: id})
			alice.send(to, &messages.Cancel{RequestId: id})
			alice.refused(id, messages.Reason_NOT_HELD)
			alice.released(id, 0)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// An owner that has lost the lock and not released it gets no Suspended for it.
func TestLostIsNotSuspended(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice, locks := all[0], b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		alice.send(lock, &messages.Acquire{RequestId: 1, Owner: "alice", Revocable: true})
		g := alice.granted(1)
		alice.send(pid(b, locks.Mutex(b.path+"-held")), &messages.Acquire{RequestId: 2})
		alice.granted(2)
		must(b, b.Client(b).Delete(b.path+"/"+g.GetNode(), -1))
		if m := expectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_NODE_DELETED {
			b.Error(m)
		}
		away := b.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		b.Embedded().DropConnections()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		away.Remove()
		waitState(b, locks, messages.SessionState_CONNECTED)
		unlock(b, result(b, locks.Mutex(b.path).Acquire(within(b)))) // by then the lock has handled the suspension
		alice.send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		alice.refused(1, messages.Reason_NODE_DELETED)
		alice.send(pid(b, locks.Mutex(b.path+"-held")), &messages.Release{RequestId: 2})
		alice.released(2, 0)
		if n := alice.suspended.Load(); n != 1 {
			b.Errorf("it got Suspended %d times, and holds one lock", n)
		}
	})
}

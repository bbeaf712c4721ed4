package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func TestMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.Locks(config)
		lock := locktest.PID(b, locks.Mutex(b.LockPath))
		alice.Send(lock, &messages.Acquire{RequestId: 1, Data: []byte("alice")})
		g := alice.Granted(1)
		if g.GetPath() != b.LockPath || g.GetSessionId() != locks.Session().ID || len(b.LockNodes()) != 1 || g.GetNode() != b.LockNodes()[0] {
			b.Errorf("%v; nodes %v", g, b.LockNodes())
		}
		data, stat, err := b.Client(b).Get(b.LockPath + "/" + g.GetNode())
		if err != nil || string(data) != "alice" || stat.Czxid != g.GetCzxid() {
			b.Errorf("%q, %+v, %v", data, stat, err)
		}
		bob.Send(lock, &messages.Acquire{RequestId: 1, Try: true})
		bob.Refused(1, messages.Reason_NOT_ACQUIRED)
		bob.Send(lock, &messages.Acquire{RequestId: 2, WaitNanos: int64(20 * time.Millisecond)})
		bob.Refused(2, messages.Reason_TIMED_OUT)
		bob.Send(lock, &messages.Acquire{RequestId: 3})
		bob.Send(lock, &messages.Cancel{RequestId: 3})
		bob.Refused(3, messages.Reason_CANCELLED)
		bob.Send(lock, &messages.Cancel{RequestId: 3})  // of an ended request: no answer
		bob.Send(lock, &messages.Release{RequestId: 1}) // of another owner
		bob.Refused(1, messages.Reason_NOT_HELD)
		bob.Send(lock, &messages.Acquire{RequestId: 4})
		b.WaitNodes(2)
		alice.Send(lock, &messages.Release{RequestId: 1})
		if m := bob.Granted(4); m.GetCzxid() <= g.GetCzxid() {
			b.Errorf("%v after %v", m, g)
		}
		alice.Released(1, 0)
		alice.Send(lock, &messages.Release{RequestId: 1})
		alice.Refused(1, messages.Reason_NOT_HELD)
		// A request of Go code waits behind a request of an actor.
		f := locks.Mutex(b.LockPath).Acquire(locktest.Within(b))
		b.WaitNodes(2)
		bob.Send(lock, &messages.Release{RequestId: 4})
		bob.Released(4, 0)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// A named owner is one owner, whichever actor sends its messages.
func TestNamedOwner(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		lock := locktest.PID(b, b.Mutex(config))
		alice.Send(lock, &messages.Acquire{RequestId: 1, Owner: "both"})
		first := alice.Granted(1)
		bob.Send(lock, &messages.Acquire{RequestId: 2, Owner: "both", Try: true})
		if again := bob.Granted(2); again.GetNode() != first.GetNode() {
			b.Errorf("re-entry: %v", again)
		}
		bob.Send(lock, &messages.Acquire{RequestId: 1, Owner: "both"})
		bob.Refused(1, messages.Reason_INVALID)
		bob.Send(lock, &messages.Release{RequestId: 1})
		bob.Refused(1, messages.Reason_NOT_HELD)
		bob.Send(lock, &messages.Release{RequestId: 1, Owner: "others"})
		bob.Refused(1, messages.Reason_NOT_HELD)
		bob.Send(lock, &messages.Release{RequestId: 1, Owner: "both"})
		bob.Released(1, 1)
		alice.Send(lock, &messages.Release{RequestId: 2, Owner: "both"})
		alice.Released(2, 0)
	})
}

func TestInvalidMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice := all[0]
		var log locktest.Log
		lock := locktest.PID(b, b.Mutex(config, log.Config))
		alice.Send(lock, &messages.Acquire{RequestId: 7})
		alice.Granted(7)
		for range 2 {
			alice.Send(lock, &messages.Acquire{RequestId: 7})
			if m := alice.Refused(7, messages.Reason_INVALID); !strings.Contains(m.GetDetail(), "7") {
				b.Errorf("%v", m)
			}
		}
		alice.Send(lock, &messages.Acquire{RequestId: 8, WaitNanos: -1})
		if m := alice.Refused(8, messages.Reason_INVALID); !strings.Contains(m.GetDetail(), "-1") {
			b.Errorf("%v", m)
		}
		alice.System.Root.Send(lock, &messages.Acquire{RequestId: 9}) // without a sender
		alice.System.Root.Send(lock, &messages.Cancel{RequestId: 7})
		alice.System.Root.Send(lock, &messages.Release{RequestId: 7})
		alice.Send(lock, "what is this?")
		alice.Send(lock, &messages.Acquire{RequestId: 10, Try: true})
		alice.Refused(10, messages.Reason_NOT_ACQUIRED)
		if len(log.With("string")) == 0 {
			b.Error("the log does not say that the message is not known")
		}
		alice.Send(lock, &messages.Release{RequestId: 7})
		alice.Released(7, 0)
		alice.Send(lock, &messages.Acquire{RequestId: 7}) // the number is free again
		alice.Granted(7)
		alice.Send(lock, &messages.Release{RequestId: 7})
		alice.Released(7, 0)
	})
}

// An Acquire without a sender does not hold the lock, though the lock is free.
func TestAcquireWithoutSender(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config)
		mu := locks.Mutex(b.LockPath)
		lock := locktest.PID(b, mu)
		all[0].System.Root.Send(lock, &messages.Acquire{RequestId: 1})
		all[0].System.Root.Send(lock, &messages.Acquire{RequestId: 1, Owner: "me"})
		g, err := mu.Lock(locktest.Within(b), actors.Try())
		locktest.Must(b, err)
		if n := b.LockNodes(); len(n) != 1 {
			b.Errorf("nodes %v", n)
		}
		locktest.Unlock(b, g)
	})
}

func TestLostMessage(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.Locks(config)
		lock := locktest.PID(b, locks.Mutex(b.LockPath))
		alice.Send(lock, &messages.Acquire{RequestId: 1, Owner: "alice"})
		alice.Granted(1)
		bob.Send(lock, &messages.Acquire{RequestId: 1})
		b.WaitNodes(2)
		b.Expire(b, locks.Session().ID)
		if m := locktest.ExpectMessage[*messages.Lost](alice); m.GetRequestId() != 1 || m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("%v", m)
		}
		bob.Granted(1)
		alice.Send(lock, &messages.Acquire{RequestId: 2, Owner: "alice"})
		if m := locktest.ExpectMessage[*messages.Refused](alice); m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("re-entry on a lost grant: %v", m)
		}
		alice.Send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		if m := locktest.ExpectMessage[*messages.Refused](alice); m.GetReason() != messages.Reason_SESSION_LOST && m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("release of a lost grant: %v", m)
		}
		alice.Send(lock, &messages.Acquire{RequestId: 3, Owner: "alice"})
		b.WaitNodes(2)
		bob.Send(lock, &messages.Release{RequestId: 1})
		bob.Released(1, 0)
		alice.Granted(3)
		alice.Send(lock, &messages.Release{RequestId: 3, Owner: "alice"})
		alice.Released(3, 0)
	})
}

// A second Release, or a Cancel after it, releases nothing, and does not suppress the answer to the
// first one.
func TestReleaseTwice(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice, locks := all[0], b.Locks(config)
		for id, lock := range []interface{ PID() (*actor.PID, error) }{
			locks.Mutex(b.LockPath), locks.Semaphore(b.LockPath+"-s", 2), locks.MultiLock(locks.Mutex(b.LockPath+"-a"), locks.Mutex(b.LockPath+"-b")),
		} {
			id := uint64(id)
			to, err := lock.PID()
			locktest.Must(b, err)
			alice.Send(to, &messages.Acquire{RequestId: id})
			alice.Granted(id)
			alice.Send(to, &messages.Release{RequestId: id})
			alice.Send(to, &messages.Release{RequestId: id})
			alice.Send(to, &messages.Cancel{RequestId: id})
			// The refusal is the first answer, unless the second Release comes after the lock was released.
			answers := map[string]bool{}
			for range 2 {
				switch m := locktest.ExpectMessage[interface{ GetRequestId() uint64 }](alice).(type) {
				case *messages.Refused:
					answers[fmt.Sprint(m.GetRequestId(), m.GetReason())] = true
				case *messages.Released:
					answers[fmt.Sprint(m.GetRequestId(), m.GetStillHeld())] = true
				}
			}
			if !answers[fmt.Sprint(id, messages.Reason_NOT_HELD)] || !answers[fmt.Sprint(id, 0)] {
				b.Errorf("%d: %v", id, answers)
			}
		}
		b.WaitNodes(0, "-a", "-b", "-c")
	})
}

// An owner that has lost the lock and not released it gets no Suspended for it.
func TestLostIsNotSuspended(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice, locks := all[0], b.Locks(config)
		lock := locktest.PID(b, locks.Mutex(b.LockPath))
		alice.Send(lock, &messages.Acquire{RequestId: 1, Owner: "alice", Revocable: true})
		g := alice.Granted(1)
		alice.Send(locktest.PID(b, locks.Mutex(b.LockPath+"-held")), &messages.Acquire{RequestId: 2})
		alice.Granted(2)
		locktest.Must(b, b.Client(b).Delete(b.LockPath+"/"+g.GetNode(), -1))
		if m := locktest.ExpectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_NODE_DELETED {
			b.Error(m)
		}
		away := b.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		b.Embedded().DropConnections()
		locktest.WaitState(b, locks, messages.SessionState_SUSPENDED)
		away.Remove()
		locktest.WaitState(b, locks, messages.SessionState_CONNECTED)
		locktest.Unlock(b, locktest.Result(b, locks.Mutex(b.LockPath).Acquire(locktest.Within(b)))) // by then the lock has handled the suspension
		alice.Send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		alice.Refused(1, messages.Reason_NODE_DELETED)
		alice.Send(locktest.PID(b, locks.Mutex(b.LockPath+"-held")), &messages.Release{RequestId: 2})
		alice.Released(2, 0)
		if n := alice.Suspended.Load(); n != 1 {
			b.Errorf("it got Suspended %d times, and holds one lock", n)
		}
	})
}

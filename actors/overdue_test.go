package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// A process just after a pause: the deadline has passed, and neither the bridge nor a timer of the
// process has noticed that.

// An answer that arrives after the holder has noticed its loss does not undo the loss.
func TestOverdueIsFinal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, bridge := v.OnBridge()
		g := locktest.Lock(v, locks.Mutex("/lock"))
		resume := locktest.PauseBridge(bridge)
		defer resume()
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline))
		locktest.Is(v, g.Err(), actors.ErrSessionLost)
		v.Resume() // the server answers the pings
		<-time.After(10 * time.Millisecond)
		if s := locks.Session(); s.State != messages.SessionState_LOST {
			v.Errorf("%+v", s)
		}
		resume()
		<-time.After(10 * time.Second)
		if s := locks.Session(); s.State != messages.SessionState_CONNECTED || s.ID == g.Session() {
			v.Errorf("%+v after %#x", s, g.Session())
		}
		g.Release() // the garbage collector could not release it from outside of the bubble
		v.Clean()
	})
}

// The deadline passes after the call of Release and before the lock's actor handles it.
func TestOverdueBehindRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, _ := v.OnBridge()
		mu := locks.Mutex("/lock")
		g, next := locktest.Lock(v, mu), mu.Acquire(context.Background())
		<-time.After(time.Second) // the next request has its node
		s := locktest.NewBlockedRecipient()
		self := messages.LockRef{To: actors.LockRecipient(mu)}
		ask.Send(self.To, &messages.Acquire{RequestId: 1, Owner: "other", Try: true}, s)
		<-s.Entered // the lock's actor is blocked while it refuses
		v.Pause()
		synctest.Wait() // an answer that is on its way moves the deadline
		<-time.After(time.Until(locks.Session().Deadline) - 1)
		release := g.Release()
		<-time.After(1)
		locktest.Pending(v, next)
		close(s.Leave)
		locktest.Is(v, locktest.Failure(v, release), actors.ErrSessionLost)
		locktest.Pending(v, next)
		v.Resume()
		locktest.Unlock(v, locktest.Result(v, next))
		v.Clean()
	})
}

// The grants of what a lock consists of wait in the mailbox of its actor while their session ends.
// The request then goes on waiting, and is granted in the next session.
func TestGrantsOfALostSession(t *testing.T) {
	t.Parallel()
	type lockOfParts interface {
		Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
	}
	for name, handle := range map[string]func(*actors.Locks) (lockOfParts, ask.Recipient){
		"semaphore": func(l *actors.Locks) (lockOfParts, ask.Recipient) {
			s := l.Semaphore("/lock", 1)
			return s, actors.LockRecipient(s)
		},
		"multi-lock": func(l *actors.Locks) (lockOfParts, ask.Recipient) {
			m := l.MultiLock(l.Mutex("/lock"), l.Mutex("/other"))
			return m, actors.LockRecipient(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				locks, other := v.Locks(), v.Locks()
				held, _ := handle(other)
				g := locktest.Result(v, held.Acquire(context.Background()))
				waiting, self := handle(locks)
				next := waiting.Acquire(context.Background())
				<-time.After(time.Second) // it has its nodes
				s := locktest.NewBlockedRecipient()
				ask.Send(self, &messages.Acquire{RequestId: 1}, s)
				<-s.Entered // the actor is blocked while it refuses a request without an owner
				locktest.Unlock(v, g)
				<-time.After(time.Second) // the parts are granted
				former := locks.Session().ID
				v.Expire(former)
				<-time.After(10 * time.Second)
				if now := locks.Session(); now.State != messages.SessionState_CONNECTED || now.ID == former {
					v.Errorf("%+v after %#x", now, former)
				}
				locktest.Pending(v, next)
				close(s.Leave)
				got := locktest.Result(v, next)
				locktest.Is(v, got.Err(), nil)
				if got.Session() == former {
					v.Errorf("granted in the former session")
				}
				locktest.Unlock(v, got)
				v.Clean()
			})
		})
	}
}

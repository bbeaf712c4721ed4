package actors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// A process that was paused, right after: the deadline has passed, and neither the
// bridge nor any timer of it has come to say so.

// stuck is a recipient that blocks its senders.
type blockedRecipient struct{ entered, leave chan struct{} }

func newBlockedRecipient() *blockedRecipient {
	return &blockedRecipient{make(chan struct{}, 10), make(chan struct{})}
}

func (s *blockedRecipient) Tell(any) {
	s.entered <- struct{}{}
	<-s.leave
}

// block keeps the bridge from doing anything until the function is called.
func block(bridge *zkbridge.Bridge) (unblock func()) {
	s := newBlockedRecipient()
	bridge.Ref().SendSubscribe(&messages.Subscribe{}, s) // it gets the state at once
	<-s.entered
	return sync.OnceFunc(func() {
		bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
		close(s.leave)
	})
}

// An answer that comes in after the holder has heard of its loss does not undo the loss.
func TestOverdueIsFinal(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks, bridge := v.onBridge()
		g := lock(v, locks.Mutex("/lock"))
		unblock := block(bridge)
		defer unblock()
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline))
		is(v, g.Err(), actors.ErrSessionLost)
		v.Resume() // answers what it was asked
		<-time.After(10 * time.Millisecond)
		if s := locks.Session(); s.State != messages.SessionState_LOST {
			v.Errorf("%+v", s)
		}
		unblock()
		<-time.After(10 * time.Second)
		if s := locks.Session(); s.State != messages.SessionState_CONNECTED || s.ID == g.Session() {
			v.Errorf("%+v after %#x", s, g.Session())
		}
		g.Release() // outside of the bubble it cannot be dropped
		v.clean()
	})
}

// The deadline passes after Release was called and before the lock's actor hears of it.
func TestOverdueBehindRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks, _ := v.onBridge()
		mu := locks.Mutex("/lock")
		g, next := lock(v, mu), mu.Acquire(context.Background())
		<-time.After(time.Second) // the next one has its node, and is in line
		s := newBlockedRecipient()
		self := messages.LockRef{To: actors.LockRecipient(mu)}
		ask.Send(self.To, &messages.Acquire{RequestId: 1, Owner: "other", Try: true}, s)
		<-s.entered // the lock's actor stands still: it refuses
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline) - 1)
		release := g.Release()
		<-time.After(1)
		pending(v, next)
		close(s.leave)
		is(v, failure(v, release), actors.ErrSessionLost)
		pending(v, next)
		v.Resume()
		unlock(v, result(v, next))
		v.clean()
	})
}

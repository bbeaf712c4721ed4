package manager_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// barrier is a subscriber that keeps the bridge from telling later ones of a loss until it is closed.
type barrier chan struct{}

func (b barrier) Tell(msg any) {
	if s, is := msg.(*messages.SessionChanged); is && s.State == messages.SessionState_LOST && s.Epoch > 0 {
		<-b
	}
}

// A request that comes after the loss of a session does not fail with that session, although its
// actor hears of the loss later. It fails with the next one.
func TestFailsWithLaterSession(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		system := host.NewSystem(nil, nil)
		defer system.Close()
		bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: s.Addr(), SessionTimeout: 5 * time.Second, Dial: s.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer bridge.Close()
		untold := make(barrier)
		bridge.Ref().SendSubscribe(&messages.Subscribe{}, untold) // ahead of the manager
		m := manager.New(system, bridge, manager.Settings{Log: slog.New(slog.DiscardHandler)})
		m.SessionEndsWithClose()
		defer m.Close()
		e, err := m.Find("/a", recipes.Mutex)
		if err != nil {
			t.Fatal(err)
		}
		lock := messages.LockRef{To: e.Self}
		first, err := lock.Acquire(&messages.Acquire{Owner: "before"}).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Expire(t, first.SessionId)
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return bridge.Lost(first.Epoch) }, "the bridge learns of the loss")
		after := lock.Acquire(&messages.Acquire{Owner: "after", FailOnSessionLoss: true})
		close(untold)
		granted, err := after.Wait(t.Context())
		if err != nil || granted.SessionId == first.SessionId {
			t.Fatalf("%v, %v", granted, err)
		}
		waits := lock.Acquire(&messages.Acquire{Owner: "waits", FailOnSessionLoss: true})
		s.Expire(t, granted.SessionId)
		if granted, err := waits.Wait(t.Context()); !errors.Is(err, messages.Reason_SESSION_LOST) {
			t.Errorf("%v, %v", granted, err)
		}
	})
}

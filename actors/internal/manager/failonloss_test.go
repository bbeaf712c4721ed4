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

// A request that comes after the loss of a session does not fail with that session, although its
// actor hears of the loss later. It fails with the next one.
func TestFailsWithLaterSession(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	defer system.Close()
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: s.Addr(), SessionTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	m := manager.New(system, bridge, manager.Settings{Log: slog.New(slog.DiscardHandler)})
	m.SessionEndsWithClose()
	defer m.Close()
	e, err := m.Find("/a", recipes.Mutex)
	if err != nil {
		t.Fatal(err)
	}
	acquire := func(owner string) *messages.Granted {
		granted, err := messages.LockRef{To: e.Self}.Acquire(&messages.Acquire{Owner: owner, FailOnSessionLoss: true}).Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
		return granted
	}
	first := acquire("before").GetSessionId()
	pass := m.HoldMessages()
	s.Expire(t, first)
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return bridge.LostAt(1, bridge.Now()) }, "the bridge learns of the loss")
	after := messages.LockRef{To: e.Self}.Acquire(&messages.Acquire{Owner: "after", FailOnSessionLoss: true})
	pass()
	granted, err := after.Wait(t.Context())
	if err != nil || granted.SessionId == first {
		t.Fatalf("%v, %v", granted, err)
	}
	waits := messages.LockRef{To: e.Self}.Acquire(&messages.Acquire{Owner: "waits", FailOnSessionLoss: true})
	s.Expire(t, granted.SessionId)
	if granted, err := waits.Wait(t.Context()); !errors.Is(err, messages.Reason_SESSION_LOST) {
		t.Errorf("%v, %v", granted, err)
	}
}

package manager_test

import (
	"errors"
	"log/slog"
	"sync"
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
	lock := messages.LockRef{To: e.Self}
	first, err := lock.Acquire(&messages.Acquire{Owner: "before"}).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pass := sync.OnceFunc(m.HoldMessages())
	defer pass() // Close needs it
	s.Expire(t, first.SessionId)
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return bridge.LostAt(first.Epoch, bridge.Now()) }, "the bridge learns of the loss")
	after := lock.Acquire(&messages.Acquire{Owner: "after", FailOnSessionLoss: true})
	pass()
	granted, err := after.Wait(t.Context())
	if err != nil || granted.SessionId == first.SessionId {
		t.Fatalf("%v, %v", granted, err)
	}
	waits := lock.Acquire(&messages.Acquire{Owner: "waits", FailOnSessionLoss: true})
	s.Expire(t, granted.SessionId)
	if granted, err := waits.Wait(t.Context()); !errors.Is(err, messages.Reason_SESSION_LOST) {
		t.Errorf("%v, %v", granted, err)
	}
}

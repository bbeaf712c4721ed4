package manager_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Close stops the actor below first. A request to the actor above ends with CLOSED then, and not
// with a failure.
func TestClosedBelowFirst(t *testing.T) {
	s := zktest.Embedded(t)
	both, err := recipes.MultiLock([]manager.Member{{Path: "/a", Recipe: recipes.Mutex}, {Path: "/b", Recipe: recipes.Mutex}})
	if err != nil {
		t.Fatal(err)
	}
	for path, r := range map[string]*manager.Recipe{"multi-lock": both} {
		system := host.NewSystem(nil, nil)
		bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: s.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		m := manager.New(system, bridge, manager.Settings{Log: slog.New(slog.DiscardHandler)})
		above, err := m.Find(path, r)
		if err != nil {
			t.Fatal(err)
		}
		m.SetClosed()
		above.Deps[0].Self.Stop()
		if _, err := (messages.LockRef{To: above.Self}).Acquire(&messages.Acquire{Owner: "me"}).Wait(t.Context()); !errors.Is(err, messages.Reason_CLOSED) {
			t.Errorf("%s: %v", path, err)
		}
		m.SessionEndsWithClose()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
		system.Close()
	}
}

// A node of an actor cannot be deleted, and the answer about that comes before Close waits for such
// answers. The error of Close names the node.
func TestCloseNamesNodeLeftEarly(t *testing.T) {
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	defer system.Close()
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	m := manager.New(system, bridge, manager.Settings{Log: slog.New(slog.DiscardHandler)})
	e, err := m.Find("/a", recipes.Mutex)
	if err != nil {
		t.Fatal(err)
	}
	m.SetClosed()
	if !m.StartCleanup(e) {
		t.Fatal("the actor does not clean up")
	}
	m.NoteUndeleted("/a/left")
	m.CleanedUp(e)
	if err := m.Close(); err == nil || !strings.Contains(err.Error(), "/a/left") {
		t.Errorf("Close: %v; it does not name /a/left", err)
	}
}

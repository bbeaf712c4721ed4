package manager

import (
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// tickedActor counts its ticks.
type tickedActor struct {
	*Entry
	ticks chan struct{}
}

// Receive implements host.Actor.
func (a tickedActor) Receive(_ ask.Recipient, msg any) {
	if _, is := msg.(Tick); is {
		a.tickPending.Store(false)
		select {
		case a.ticks <- struct{}{}:
		default:
		}
	}
}

// Stopped implements host.Actor.
func (a tickedActor) Stopped(any) {
	a.Manager.Forget(a.Entry)
	a.Manager.Stopped()
}

// Refuse implements host.Actor.
func (tickedActor) Refuse(ask.Recipient, any) {}

// Each recipe of a path has an actor for the clients of a lock server; the program has one of the first
// recipe that it asks for. All have ticks, and stop with the manager.
func TestFindServed(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		zk := zktest.Virtual(t)
		system := host.NewSystem(nil, nil)
		defer system.Close()
		bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: zk.Addr(), Dial: zk.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer bridge.Close()
		m := New(system, bridge, Settings{})
		ticks := make(chan struct{}, 1)
		recipe := func(name string) *Recipe {
			return &Recipe{Name: name, Rule: queue.Mutex(), Kinds: []string{"exclusive"}, NewActor: func(e *Entry) host.Actor { return tickedActor{e, ticks} }}
		}
		first, second := recipe("first"), recipe("second")
		find := func(find func(string, *Recipe) (*Entry, error), path string, r *Recipe) *Entry {
			t.Helper()
			e, err := find(path, r)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		a, b := find(m.FindServed, "/a", first), find(m.FindServed, "/a", second)
		if a == b || find(m.FindServed, "/a", recipe("first")) != a || find(m.FindServed, "/a", second) != b {
			t.Error("not one actor for each recipe")
		}
		for range 3 { // however long there are only such actors
			<-ticks
		}
		if find(m.Find, "/a", second) == b {
			t.Error("the program has the actor of the clients")
		}
		if find(m.FindServed, "/a", second) != b {
			t.Error("clients go to the actor of the program though others of them may wait in theirs")
		}
		if _, err := m.Find("/a", first); err == nil {
			t.Error("the program has two recipes on one path")
		}
		once, again := find(m.FindServed, "/b", first), find(m.FindServed, "/b", first)
		if once != again || find(m.Find, "/c", first) != find(m.FindServed, "/c", first) {
			t.Error("the actor of the program does not serve clients with its settings")
		}
		m.SessionEndsWithClose()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

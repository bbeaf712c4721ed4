package lockqueue

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Standing returns what an owner has of the lock: by that, its request is part of an atomic create, enters a grant, or is
// refused.
func TestStanding(t *testing.T) {
	s := New(queue.ReadWrite(), Incarnation{1})
	Step(s, Session{Epoch: 1, State: Connected})
	want := func(owner string, kind queue.Kind, want OwnerStanding) {
		t.Helper()
		if got := s.Standing(owner, kind); got != want {
			t.Errorf("%q, kind %d: %+v, want %+v", owner, kind, got, want)
		}
	}
	want("a", queue.Exclusive, OwnerStanding{})
	want("", queue.Exclusive, OwnerStanding{})
	create := Step(s, Acquire{Incoming: requests.Incoming{ID: 1, Owner: "a", Kind: queue.Exclusive}, AtomicCreate: 7})[0]
	want("a", queue.Exclusive, OwnerStanding{Known: true, AtomicCreate: 7})
	want("a", queue.Shared, OwnerStanding{Known: true}) // it does not hold yet
	want("b", queue.Exclusive, OwnerStanding{})
	Step(s, Created{Serial: create.Serial, Node: create.Node + "0000000000", Czxid: 5, Directory: 1, Children: []string{create.Node + "0000000000"}})
	want("a", queue.Shared, OwnerStanding{Known: true, AtomicCreate: 7})
	create = Step(s, Acquire{Incoming: requests.Incoming{ID: 2, Owner: "a", Kind: queue.Shared}})[0]
	Step(s, Created{Serial: create.Serial, Node: create.Node, Czxid: 6, Directory: 1})
	Step(s, Release{ID: 1})
	want("a", queue.Shared, OwnerStanding{Known: true, AtomicCreate: 7}) // the reader has the token of the writer's node
	want("a", queue.Exclusive, OwnerStanding{Known: true})
	Step(s, Session{Epoch: 1, State: Lost})
	want("a", queue.Shared, OwnerStanding{})
}

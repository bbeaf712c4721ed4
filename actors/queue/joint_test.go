package queue

import "testing"

// What an owner has decides whether its request is a part of a multi-lock, enters one, or is
// refused.
func TestEntry(t *testing.T) {
	s := NewState(ReadWrite(), Incarnation{1})
	Step(s, Session{Epoch: 1, State: Connected})
	want := func(owner string, kind Kind, want Entry) {
		t.Helper()
		if got := s.Entry(owner, kind); got != want {
			t.Errorf("%q, kind %d: %+v, want %+v", owner, kind, got, want)
		}
	}
	want("a", Exclusive, Entry{})
	want("", Exclusive, Entry{})
	create := Step(s, Acquire{ID: 1, Owner: "a", Kind: Exclusive, Joint: true, Group: 7})[0]
	want("a", Exclusive, Entry{Known: true, Group: 7})
	want("a", Shared, Entry{Known: true}) // it does not hold yet
	want("b", Exclusive, Entry{})
	Step(s, Created{Epoch: 1, Serial: create.Serial, Node: create.Node + "0000000000", Czxid: 5, Directory: 1, Children: []string{create.Node + "0000000000"}})
	want("a", Shared, Entry{Known: true, Group: 7})
	create = Step(s, Acquire{ID: 2, Owner: "a", Kind: Shared})[0]
	Step(s, Created{Epoch: 1, Serial: create.Serial, Node: create.Node, Czxid: 6, Directory: 1})
	Step(s, Release{ID: 1})
	want("a", Shared, Entry{Known: true, Group: 7}) // its token is that of the node it came from
	want("a", Exclusive, Entry{Known: true})
	if why, requests := s.LostBy("a"); why != 0 || len(requests) > 0 {
		t.Errorf("lost because of %d by %v", why, requests)
	}
	Step(s, Session{Epoch: 1, State: Lost})
	if why, requests := s.LostBy("a"); why != SessionLost || len(requests) != 1 || requests[0] != 2 {
		t.Errorf("lost because of %d by %v", why, requests)
	}
	if why, requests := s.LostBy(""); why != 0 || requests != nil {
		t.Errorf("nobody has lost it because of %d by %v", why, requests)
	}
}

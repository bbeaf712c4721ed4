package lockqueue

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The State names the node of an entry from its Created on: before that, and without the node, its
// prefix is all that is known.
func TestNode(t *testing.T) {
	s := newState(queue.Mutex(), Incarnation{})
	expect := func(serial uint64, name string, made bool) {
		t.Helper()
		if got, is := s.Node(serial); got != name || is != made {
			t.Errorf("Node(%d) = %q, %v; want %q, %v", serial, got, is, name, made)
		}
	}
	Step(s, Session{Epoch: 1, State: Connected})
	first := Step(s, Acquire{ID: 1})[0]
	expect(first.Serial, first.Node, false)
	if nodes := maps.Collect(s.Nodes()); len(nodes) > 0 {
		t.Errorf("Nodes() = %v before the first Created", nodes)
	}
	own := first.Node + "0000000001"
	Step(s, Created{Serial: first.Serial, Node: own, Token: requests.Token{Czxid: 10}, DirectoryCzxid: 1, Children: []string{own}})
	expect(first.Serial, own, true)
	if nodes := maps.Collect(s.Nodes()); !maps.Equal(nodes, map[uint64]string{first.Serial: own}) {
		t.Errorf("Nodes() = %v after the first Created", nodes)
	}
	expect(first.Serial+1, "", false)

	// A list shows a node before its Created, and the next list does not.
	second := Step(s, Acquire{ID: 2})[0]
	third := Step(s, Acquire{ID: 3})[0]
	waiting, last := second.Node+"0000000002", third.Node+"0000000003"
	reconnect(s, own, waiting)
	expect(second.Serial, waiting, true)
	reconnect(s, own, last)
	expect(second.Serial, second.Node, false)
}

// A failed actor deletes its nodes in one order, so that a history repeats.
func TestNodesInOrder(t *testing.T) {
	s := newState(queue.Mutex(), Incarnation{})
	Step(s, Session{Epoch: 1, State: Connected})
	var want, got []uint64
	var children []string
	for id := requests.ID(1); id <= 20; id++ {
		e := Step(s, Acquire{ID: id})[0]
		children = append(children, fmt.Sprintf("%s%010d", e.Node, id))
		Step(s, Created{Serial: e.Serial, Node: children[id-1], Token: requests.Token{Czxid: int64(id)}, DirectoryCzxid: 1, Children: slices.Clone(children)})
		want = append(want, e.Serial)
	}
	for serial := range s.Nodes() {
		got = append(got, serial)
	}
	if !slices.Equal(got, want) {
		t.Errorf("Nodes() = %v, want %v", got, want)
	}
}

// reconnect answers the list that follows a reconnect, and the watches.
func reconnect(s *State, children ...string) {
	Step(s, Session{Epoch: s.epoch, State: Suspended})
	for _, f := range append([]Effect(nil), Step(s, Session{Epoch: s.epoch, State: Connected})...) {
		switch f.Kind {
		case requests.ListDirectory:
			Step(s, Listed{Serial: f.Serial, DirectoryCzxid: 1, Children: children})
		case requests.WatchNodes:
			Step(s, Watched{Serial: f.Serial})
		}
	}
}

// Requests that end before their creates are answered have few lists read: each has all of their
// nodes.
func TestListsOfAbandonedCreates(t *testing.T) {
	const n = 1000
	s := newState(queue.Mutex(), Incarnation{})
	Step(s, Session{Epoch: 1, State: Connected})
	lists := 0
	for id := requests.ID(1); id <= n; id++ {
		if Step(s, Acquire{ID: id})[0].ListAfter {
			lists++
		}
		Step(s, Cancel{ID: id, Reason: requests.Cancelled})
	}
	if lists > 100 {
		t.Errorf("%d creates ask for %d lists", n, lists)
	}
}

// Otherwise the actor of the lock never ends.
func TestIdleAfterAllReleases(t *testing.T) {
	s := newState(queue.Mutex(), Incarnation{})
	expect := func(after string, idle bool) {
		t.Helper()
		if s.Idle() != idle {
			t.Errorf("after %s: Idle() = %v", after, s.Idle())
		}
	}
	expect("New", true)
	Step(s, Acquire{ID: 1})
	expect("an acquire without a session", false)
	create := Step(s, Session{Epoch: 1, State: Connected})[0]
	expect("CreateNode", false)
	own := create.Node + "0000000001"
	Step(s, Created{Serial: create.Serial, Node: own, Token: requests.Token{Czxid: 10}, DirectoryCzxid: 1, Children: []string{own}})
	expect("the grant", false)
	Step(s, Release{ID: 1})
	expect("the release", false)
	Step(s, Deleted{Serial: create.Serial})
	expect("Deleted", true)
}

// A closed lock hears of the end of its session only by the answer to its last effect.
func TestEndingOfAClosedLockWithoutASession(t *testing.T) {
	for _, why := range []requests.Reason{requests.SessionLost, requests.Closed} {
		s := newState(delayedMutex(), Incarnation{})
		Step(s, Session{Epoch: 1, State: Connected})
		create := Step(s, Acquire{ID: 1})[0]
		own := create.Node + "0000000001"
		marker := Step(s, Created{Serial: create.Serial, Node: own, Token: requests.Token{Czxid: 10}, DirectoryCzxid: 1, Children: []string{own}})[0]
		Step(s, Transacted{Serial: marker.Serial, Done: true})
		release := Step(s, Release{ID: 1})[0]
		Step(s, Close{Reason: requests.Closed})
		if !s.Ending() {
			t.Errorf("%v: Ending() = false before the answer to %v", why, release.Kind)
		}
		if effects := Step(s, Failed{Serial: release.Serial, Reason: why}); len(effects) > 0 || s.Ending() {
			t.Errorf("%v: %v, Ending() = %v", why, effects, s.Ending())
		}
	}
}

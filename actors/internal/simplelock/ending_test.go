package simplelock

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// A closed contender ends with its session, which deletes its nodes: no other answer comes.
func TestEndingOfAClosedContenderWithoutASession(t *testing.T) {
	s := New(&recorder{}, "lock", false, [8]byte{})
	s.Session(1, true)
	s.Acquire(requests.Incoming{ID: 1})
	step(s, transacted(1, Transaction{Done: true, Czxid: 101}))
	s.Close(requests.Closed)
	if !s.Ending() {
		t.Error("Ending() = false while its nodes are being deleted")
	}
	step(s, failed(2, requests.SessionLost))
	if s.Ending() {
		t.Error("Ending() = true after the end of the session")
	}
}

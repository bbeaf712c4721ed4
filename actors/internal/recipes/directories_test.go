package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// newDirectories returns the directory of a mutex without an actor.
func newDirectories() *directories {
	ds := &directories{Actor: &lock.Actor{Entry: &manager.Entry{Recipe: Mutex}}}
	ds.queue = ds.newDirectory("/lock", Mutex, nil)
	return ds
}

// Events of a session come after its deadline, at which the process counts it as lost. They do not
// bring the session back.
func TestSessionDoesNotComeBack(t *testing.T) {
	type session struct {
		epoch  uint64
		lost   bool
		number int64
	}
	l := newDirectories()
	lost := session{epoch: 3, lost: true}
	for _, event := range []struct {
		state messages.SessionState
		epoch uint64
		want  session
	}{
		{messages.SessionState_SUSPENDED, 3, lost},
		{messages.SessionState_CONNECTED, 3, lost},
		{messages.SessionState_LOST, 3, lost},
		{messages.SessionState_CONNECTED, 4, session{4, false, 7}},
		{messages.SessionState_LOST, 4, session{4, true, 7}},
		{messages.SessionState_ENDED, 4, session{4, true, 7}},
	} {
		if event.want == lost {
			l.epoch, l.lost, l.session = lost.epoch, lost.lost, lost.number
		}
		l.SessionChanged(nil, &messages.SessionChanged{State: event.state, Epoch: event.epoch, SessionId: 7})
		if got := (session{l.epoch, l.lost, l.session}); got != event.want {
			t.Errorf("after %v of %d: %+v, want %+v", event.state, event.epoch, got, event.want)
		}
	}
}

// A NodesQuery of the manager comes after the deletion of the lock's last node was answered. It is
// answered, too. Close would not return otherwise.
func TestNodesQueryBehindLastDeletion(t *testing.T) {
	l := newDirectories()
	reply := make(chan []string, 1)
	l.ReceiveAfterStop(nil, manager.NodesQuery{Reply: reply})
	select {
	case nodes := <-reply:
		if len(nodes) > 0 {
			t.Errorf("the nodes %v are left", nodes)
		}
	default:
		t.Error("the NodesQuery is not answered")
	}
}

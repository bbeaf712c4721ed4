package recipes

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// Events of a session come after its deadline, at which the process counts it as lost. They do not bring the session back.
func TestSessionDoesNotComeBack(t *testing.T) {
	l := &lockActor{state: lockqueue.New(queue.Mutex(), lockqueue.Incarnation{})}
	lost := lockSession{epoch: 3, lost: true}
	for _, event := range []struct {
		state messages.SessionState
		epoch uint64
		want  lockSession
	}{
		{messages.SessionState_SUSPENDED, 3, lost},
		{messages.SessionState_CONNECTED, 3, lost},
		{messages.SessionState_LOST, 3, lost},
		{messages.SessionState_CONNECTED, 4, lockSession{epoch: 4, session: 7}},
		{messages.SessionState_LOST, 4, lockSession{epoch: 4, lost: true, session: 7}},
		{messages.SessionState_ENDED, 4, lockSession{epoch: 4, lost: true, session: 7}},
	} {
		if event.want == lost {
			l.lockSession = lost
		}
		l.SessionChanged(nil, &messages.SessionChanged{State: event.state, Epoch: event.epoch, SessionId: 7})
		if l.lockSession != event.want {
			t.Errorf("after %v of %d: %+v, want %+v", event.state, event.epoch, l.lockSession, event.want)
		}
	}
}

// A NodesQuery of the manager comes after the deletion of the lock's last node was answered. It is answered, too. Close would
// not return otherwise.
func TestNodesQueryBehindLastDeletion(t *testing.T) {
	l := &lockActor{state: lockqueue.New(queue.Mutex(), lockqueue.Incarnation{})}
	reply := make(chan []string, 1)
	l.ReceiveAfterStop(nil, shell.NodesQuery{Reply: reply})
	select {
	case nodes := <-reply:
		if len(nodes) > 0 {
			t.Errorf("the nodes %v are left", nodes)
		}
	default:
		t.Error("the NodesQuery is not answered")
	}
}

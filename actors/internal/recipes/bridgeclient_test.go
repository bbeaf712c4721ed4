package recipes

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// sessionRecorder records the session events that a bridgeClient passes on.
type sessionRecorder struct {
	nodeActor
	events []any
}

func (r *sessionRecorder) onSession(epoch uint64, state lockqueue.SessionState) {
	r.events = append(r.events, lockqueue.Session{Epoch: epoch, State: state})
}

func (r *sessionRecorder) close() { r.events = append(r.events, "closed") }

// Events of a session come after its deadline, at which the process counts it as lost. They do not bring the session back.
func TestSessionDoesNotComeBack(t *testing.T) {
	var r sessionRecorder
	b := bridgeClient{actor: &r, epoch: 3, lost: true}
	for _, state := range []messages.SessionState{messages.SessionState_SUSPENDED, messages.SessionState_CONNECTED, messages.SessionState_LOST} {
		b.SessionChanged(nil, &messages.SessionChanged{State: state, Epoch: 3})
	}
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_CONNECTED, Epoch: 4, SessionId: 7})
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_LOST, Epoch: 4})
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_ENDED, Epoch: 4})
	want := []any{lockqueue.Session{Epoch: 4, State: lockqueue.Connected}, lockqueue.Session{Epoch: 4, State: lockqueue.Lost}, "closed"}
	if fmt.Sprint(r.events) != fmt.Sprint(want) || b.epoch != 4 || b.session != 7 || !b.lost {
		t.Errorf("got %v, want %v; %+v", r.events, want, b)
	}
}

// A NodesQuery of the manager comes after the deletion of the lock's last node was answered. It is answered, too. Close would
// not return otherwise.
func TestNodesQueryBehindLastDeletion(t *testing.T) {
	l := &lockActor{state: lockqueue.New(queue.Mutex(), lockqueue.Incarnation{})}
	l.actor = l
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

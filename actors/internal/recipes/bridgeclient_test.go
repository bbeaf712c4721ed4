package recipes

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// heard notes what a bridgeClient makes of the session's changes.
type heard struct {
	nodeActor
	all []any
}

func (h *heard) onSession(epoch uint64, state lockqueue.SessionState) {
	h.all = append(h.all, lockqueue.Session{Epoch: epoch, State: state})
}

func (h *heard) close() { h.all = append(h.all, "closed") }

// News of a session that was taken for lost by the clock come late: it does not come back.
func TestSessionDoesNotComeBack(t *testing.T) {
	var h heard
	b := bridgeClient{actor: &h, epoch: 3, lost: true}
	for _, state := range []messages.SessionState{messages.SessionState_SUSPENDED, messages.SessionState_CONNECTED, messages.SessionState_LOST} {
		b.SessionChanged(nil, &messages.SessionChanged{State: state, Epoch: 3})
	}
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_CONNECTED, Epoch: 4, SessionId: 7})
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_LOST, Epoch: 4})
	b.SessionChanged(nil, &messages.SessionChanged{State: messages.SessionState_ENDED, Epoch: 4})
	want := []any{lockqueue.Session{Epoch: 4, State: lockqueue.Connected}, lockqueue.Session{Epoch: 4, State: lockqueue.Lost}, "closed"}
	if fmt.Sprint(h.all) != fmt.Sprint(want) || b.epoch != 4 || b.session != 7 || !b.lost {
		t.Errorf("got %v, want %v; %+v", h.all, want, b)
	}
}

// The manager asks for a lock's nodes while the deletion of the last one is being answered. The answer to
// the manager comes behind that: without it Close would not return.
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
		t.Error("there is no answer")
	}
}

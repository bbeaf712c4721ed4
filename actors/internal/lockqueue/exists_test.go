package lockqueue

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A CreateNode reports DirectoryExists only while a contender of this process is in the directory.
// A directory without contenders may be deleted at any time.
func TestCreateInExistingDirectory(t *testing.T) {
	s := newState(queue.Mutex(), Incarnation{1})
	create := func(effects []Effect) Effect {
		t.Helper()
		for _, f := range effects {
			if f.Kind == requests.CreateNode {
				return f
			}
		}
		t.Fatal("no CreateNode")
		return Effect{}
	}
	Step(s, Session{Epoch: 1, State: Connected})
	first := create(Step(s, Acquire{ID: 1}))
	second := create(Step(s, Acquire{ID: 2}))
	if first.DirectorySeen || second.DirectorySeen {
		t.Errorf("DirectorySeen before the first answer: %v, %v", first.DirectorySeen, second.DirectorySeen)
	}
	if first.DirectoryExists || second.DirectoryExists {
		t.Errorf("DirectoryExists before the first node: %v, %v", first.DirectoryExists, second.DirectoryExists)
	}
	Step(s, Created{Serial: first.Serial, Node: first.Node + "0000000000", Token: requests.Token{Czxid: 9}, DirectoryCzxid: 8, Children: []string{first.Node + "0000000000"}})
	if third := create(Step(s, Acquire{ID: 3})); !third.DirectoryExists {
		t.Error("no DirectoryExists beside the first node")
	}
	Step(s, Cancel{ID: 2, Reason: requests.Cancelled})
	Step(s, Cancel{ID: 3, Reason: requests.Cancelled})
	Step(s, Release{ID: 1})
	if fourth := create(Step(s, Acquire{ID: 4})); fourth.DirectoryExists || !fourth.DirectorySeen {
		t.Errorf("while the only node is being deleted: DirectoryExists %v, DirectorySeen %v", fourth.DirectoryExists, fourth.DirectorySeen)
	}
	Step(s, Session{Epoch: 2, State: Connected})
	if fifth := create(Step(s, Acquire{ID: 5})); fifth.DirectorySeen {
		t.Error("DirectorySeen in the next session")
	}
}

package lockqueue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Near the end of the sequence numbers nodes rank by czxid. The nodes of one transaction of another process rank by their
// numbers among each other. A holder of this process with NotifyContended is notified by which of them waits for which.
func TestOneTransactionOfAnother(t *testing.T) {
	const second, first = "_c_aaaaaaaa-0000-8000-8000-000000000001-lock-2147483001", "_c_bbbbbbbb-0000-8000-8000-000000000001-lock-2147483000"
	s := New(queue.Mutex(), Incarnation{})
	Step(s, Session{Epoch: 1, State: Connected})
	create := Step(s, Acquire{Incoming: requests.Incoming{ID: 1}})[0]
	own := create.Node + "2147483002"
	list := Step(s, Created{Serial: create.Serial, Node: own, Czxid: 106, Directory: 1, Children: []string{own}})[0]
	if list.Kind != ListDirectory || !list.WithCzxids {
		t.Fatalf("%+v", list)
	}
	Step(s, Listed{Serial: list.Serial, Directory: 1, Children: []string{second, first, own}, Czxids: []int64{105, 105, 106}})
	if len(s.contenders) != 3 || s.contenders[0].name != first || s.contenders[1].name != second {
		for _, c := range s.contenders {
			t.Error(c.name, c.rank)
		}
	}
}

// Several nodes of one transaction have the last sequence number. Their order is not known, so one of them may wait for the
// others.
func TestLastNumberInOneTransactionOfAnother(t *testing.T) {
	rule := queue.Rule{Permits: 3, OwnMarkersOnly: true, BlockedBy: []queue.KindSet{0, queue.Kinds(0)}, Markers: []string{"-a-", "-b-"}}
	s := New(rule, Incarnation{})
	Step(s, Session{Epoch: 1, State: Connected})
	create := Step(s, Acquire{Incoming: requests.Incoming{ID: 1, NotifyContended: true}})[0]
	own := create.Node + "2147483646"
	list := Step(s, Created{Serial: create.Serial, Node: own, Czxid: 104, Directory: 1, Children: []string{own}})[0]
	effects := Step(s, Listed{Serial: list.Serial, Directory: 1, Children: []string{own, "x1-b-2147483647", "x2-a-2147483647", "x3-a-2147483647"},
		Czxids: []int64{104, 105, 105, 105}})
	if !slices.ContainsFunc(effects, func(e Effect) bool { return e.Kind == NotifyContended && e.ID == 1 }) {
		t.Errorf("%+v", effects)
	}
}

// A contender of this process waits for earlier ones that no list has shown yet.
func TestUnlistedAhead(t *testing.T) {
	s := New(machinetest.IntentionLocks(), Incarnation{})
	s.lastSerial = 0 // the permits are not in the serials
	Step(s, Session{Epoch: 1, State: Connected})
	names := make([]string, 4)
	for id, kind := range []queue.Kind{1: 1, 2: 3, 3: 0} { // IX, X, IS
		if id > 0 {
			names[id] = fmt.Sprint(Step(s, Acquire{Incoming: requests.Incoming{ID: requests.ID(id), Kind: kind}})[0].Node, 2147483000+id)
		}
	}
	names = names[1:]
	list := Step(s, Created{Serial: 3, Node: names[2], Czxid: 106, Directory: 1, Children: names})[0]
	Step(s, Listed{Serial: list.Serial, Directory: 1, Children: names, Czxids: []int64{104, 105, 106}})
	Step(s, Created{Serial: 1, Node: names[0], Czxid: 104})
	effects := slices.Clone(Step(s, Created{Serial: 2, Node: names[1], Czxid: 105}))
	if len(effects) != 1 || effects[0].Kind != ListDirectory {
		t.Fatalf("%+v", effects)
	}
	effects = slices.Clone(Step(s, Listed{Serial: effects[0].Serial, Directory: 1, Children: names, Czxids: []int64{104, 105, 106}}))
	for _, e := range effects {
		if e.Kind == Grant && e.ID != 1 {
			t.Errorf("%+v", e)
		}
	}
	if len(effects) == 0 || effects[0].Kind != Grant {
		t.Errorf("%+v", effects)
	}
}

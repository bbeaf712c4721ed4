package queue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
)

// Near the end of the numbers czxids order the contenders. Those that one transaction made have
// one czxid and stand in the order of their creates, however the server lists them.
func TestPositionsOfOneTransactionNearTheEnd(t *testing.T) {
	const near = 1<<31 - 1<<20
	rule := queue.Mutex()
	for name, seqs := range map[string][]int32{"near": {near, near + 1, near + 2}, "wrapped": {1<<31 - 2, 1<<31 - 1, -1 << 31}} {
		t.Run(name, func(t *testing.T) {
			var seen []queue.Child
			for i, seq := range seqs {
				seen = append(seen, queue.Child{Name: fmt.Sprintf("_c_00000000-0000-0000-0000-%012d-lock-%010d", i, seq), Czxid: 7})
			}
			want := slices.Clone(seen)
			slices.Reverse(seen)
			got := rule.Positions(seen)
			for i, s := range got {
				if s.Child != want[i] || s.Holds != (i == 0) || s.Ahead != i {
					t.Errorf("place %d: %+v, want %v", i, s, want[i])
				}
			}
		})
	}
}

// A downgraded reader holds beside its writer's node also where later numbers are near the end.
func TestPositionsOfADowngradeBesideTheEnd(t *testing.T) {
	const id = "_c_00000000-0000-0000-0000-00000000000"
	got := queue.ReadWrite().Positions([]queue.Child{
		{Name: id + "2-__READ__0000000044", Czxid: 9},
		{Name: id + "1-__WRIT__0000000044", Czxid: 7},
		{Name: id + "3-__WRIT__2147483557", Czxid: 8},
	})
	for i, holds := range []bool{true, true, false} {
		if got[i].Holds != holds {
			t.Errorf("place %d: %+v, want that it holds: %v", i, got[i], holds)
		}
	}
}

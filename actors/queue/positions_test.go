package queue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
)

// Near the end of the sequence numbers, contenders are in the order of their czxids. Those of one
// transaction have one czxid, and are in the order of their creates, however the server lists them.
func TestPositionsOfOneTransactionNearTheEnd(t *testing.T) {
	const near = 1<<31 - 1<<20
	for name, seqs := range map[string][]int32{"near": {near, near + 1, near + 2}, "wrapped": {1<<31 - 2, 1<<31 - 1, -1 << 31}} {
		t.Run(name, func(t *testing.T) {
			var children []queue.Child
			for i, seq := range seqs {
				children = append(children, queue.Child{Name: fmt.Sprintf("_c_00000000-0000-0000-0000-%012d-lock-%010d", i, seq), Czxid: 7})
			}
			want := slices.Clone(children)
			slices.Reverse(children)
			for i, p := range queue.Mutex().Positions(children) {
				if p.Child != want[i] || p.Holds != (i == 0) || p.Ahead != i {
					t.Errorf("position %d: %+v, want %v", i, p, want[i])
				}
			}
		})
	}
}

// A downgraded reader holds beside its writer's node also if the sequence numbers behind them are
// near the end.
func TestPositionsOfADowngradeNearTheEnd(t *testing.T) {
	const id = "_c_00000000-0000-0000-0000-00000000000"
	got := queue.ReadWrite().Positions([]queue.Child{
		{Name: id + "2-__READ__0000000044", Czxid: 9},
		{Name: id + "1-__WRIT__0000000044", Czxid: 7},
		{Name: id + "3-__WRIT__2147483557", Czxid: 8},
	})
	for i, holds := range []bool{true, true, false} {
		if got[i].Holds != holds {
			t.Errorf("position %d: %+v, want Holds %v", i, got[i], holds)
		}
	}
}

// A child of the leases takes a permit whatever its name is, as with Curator's
// InterProcessSemaphoreV2.
func TestPositionsBehindAnUnknownChild(t *testing.T) {
	const id = "_c_00000000-0000-0000-0000-00000000000"
	children := []queue.Child{
		{Name: "foreign", Czxid: 9}, {Name: id + "1-lease-0000000001", Czxid: 7}, {Name: id + "2-lease-0000000002", Czxid: 8},
	}
	for permits, want := range map[int][]bool{1: {false, false}, 2: {true, false}, 3: {true, true}} {
		for i, p := range queue.Leases(permits).Positions(children) {
			if p.Holds != want[i] || p.Ahead != i {
				t.Errorf("%d permits, position %d: %+v, want Holds %v", permits, i, p, want[i])
			}
		}
	}
	for i, p := range queue.Mutex().Positions(children[:2]) { // a mutex ignores unknown children
		if !p.Holds {
			t.Errorf("mutex, position %d: %+v, want Holds", i, p)
		}
	}
}

package lockqueue

import (
	"math"
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
)

// TestNothingKnownIsBelowAllRanks: otherwise a contender could be granted before the first list.
func TestNothingKnownIsBelowAllRanks(t *testing.T) {
	for _, byCzxid := range []bool{false, true} {
		for _, seq := range []int64{math.MinInt32, -1, 0, 1, math.MaxInt32} {
			if rank := queue.Rank(byCzxid, seq, 1); rank <= nothingKnown {
				t.Errorf("byCzxid %v: the contender with number %d ranks at %d, and nothing is known through %d", byCzxid, seq, rank, nothingKnown)
			}
		}
	}
}

package elections

import (
	"sync/atomic"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Two of three members leave at one time, and one function of each does not return: the third member leads
// all other partitions meanwhile, also those of which these two were the best and the second member.
func TestPartitionsOfLeavingMembers(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := newShards(b, 30)
		returns := make(chan struct{})
		var leaving atomic.Bool
		slow := func() *shard {
			first := make(chan struct{}, 1)
			first <- struct{}{}
			return g.joinWith(b.Locks(), "slow", func(term *actors.PartitionTerm) {
				<-term.Context().Done()
				if leaving.Load() {
					select {
					case <-first:
						<-returns
					default:
					}
				}
			})
		}
		one, two := slow(), slow()
		three := g.join(b.Locks(), "three")
		g.balanced(one, two, three)
		leaving.Store(true)
		one.leave(locktest.ErrEnough)
		two.leave(locktest.ErrEnough)
		var leads [3]int
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			leads = [3]int{one.leads(), two.leads(), three.leads()}
			return leads[2] == 28
		}, "the third member leads all but two: %v", &leads)
		close(returns)
		g.balanced(three)
	})
}

package group_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Members share the partitions, and give them away when they leave.
func TestMembers(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		const n = 64
		var running [n]atomic.Int32
		join := func() (*group.Membership, *atomic.Int32) {
			leads := new(atomic.Int32)
			f := group.NewFollower(access.Manager(b.Locks()), b.LockPath, n)
			m := f.Join(context.Background(), []byte("data"), func(p int, term *campaign.Term) {
				if running[p].Add(1) > 1 {
					t.Errorf("two terms in partition %d", p)
				}
				leads.Add(1)
				<-term.Context().Done()
				leads.Add(-1)
				running[p].Add(-1)
			})
			awaitListed(m)
			return m, leads
		}
		first, firstLeads := join()
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return firstLeads.Load() == n }, "the first member leads all")
		second, secondLeads := join()
		zktest.Eventually(t, zktest.TimeLimit, func() bool {
			return firstLeads.Load()+secondLeads.Load() == n && secondLeads.Load() > n/3 && firstLeads.Load() > n/3
		}, "the members share")
		first.Leave()
		<-first.Done()
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return secondLeads.Load() == n }, "the second member leads all")
		second.Leave()
		<-second.Done()
	})
}

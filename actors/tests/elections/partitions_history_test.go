package elections

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Members of three processes share partitions while processes are cut off, sessions end, the server is
// killed and started again, and requests fail; members leave, and come back. No terms of a partition
// overlap, tokens grow, and no function begins before another one has returned, unless that one's term is
// lost. After the last fault the members lead all partitions in equal shares, and all see who leads.
func TestHistoryOfPartitions(t *testing.T) {
	t.Parallel()
	for i := range sample.Size(1, 3) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { locktest.Bubble(t, historyOfPartitions) })
	}
}

func historyOfPartitions(v *locktest.Virtual) {
	g := newShards(v.Fixture, 1+rand.IntN(12))
	stopOnSuspended := rand.N(2) == 0
	processes, members := make([]locktest.Process, 3), make([]*shard, 3)
	for i := range members {
		processes[i] = v.Process(func(cfg *actors.Config) { cfg.StopOnSuspended = stopOnSuspended })
		members[i] = g.joinRandom(processes[i].Locks, fmt.Sprint(i))
	}
	for range 25 {
		fault := v.Inject(campaignFaults[rand.N(len(campaignFaults))])
		i := rand.N(len(members))
		switch rand.N(4) {
		case 0:
			members[i].leaves()
			<-time.After(rand.N(locktest.SessionTimeout))
			members[i] = g.joinRandom(processes[i].Locks, fmt.Sprint(i))
		case 1: // while it joins, or leads
			members[i].expireNow(processes[i].Locks)
		default:
			processes[i].Outage(v)
		}
		fault.Remove()
		<-time.After(rand.N(2 * locktest.SessionTimeout))
	}
	g.steady.Store(true)
	g.balanced(members...)
	byName := map[string]*shard{}
	for i, m := range members {
		byName[fmt.Sprint(i)] = m
	}
	for _, m := range members {
		g.agree(m.partitions, byName)
	}
	for _, m := range members {
		m.leaves()
		if !errors.Is(m.err, locktest.ErrEnough) {
			v.Errorf("a member has left: %v", m.err)
		}
	}
	v.Clean()
}

// joinRandom starts a member whose functions return late, or of themselves, until the group is steady.
func (g *shards) joinRandom(locks *actors.Locks, data string) *shard {
	return g.joinWith(locks, data, func(term *actors.PartitionTerm) {
		if rand.N(10) == 0 && !g.steady.Load() {
			<-time.After(rand.N(3 * time.Second))
			term.Resign()
		}
		<-term.Context().Done()
		if rand.N(2) == 0 {
			<-time.After(rand.N(3 * time.Second))
		}
	})
}

// A member that is cut off loses its partitions when its session has expired, at the server and by its
// own clock; the other one leads them within the session timeout and a second.
func TestPartitionsAfterAKill(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locktest.NeedsZooKeeper(v, "a lock server keeps the leases of its clients")
		g := newShards(v.Fixture, 16)
		killed := v.Process()
		one, two := g.join(killed.Locks, "one"), g.join(v.Locks(), "two")
		g.balanced(one, two)
		killed.Disconnect()
		at := time.Now()
		zktest.Eventually(v, time.Hour, func() bool { return two.leads() == g.count }, "the other one leads all")
		if waited := time.Since(at); waited > locktest.SessionTimeout+2*time.Second {
			v.Errorf("the other one leads all after %v", waited)
		}
		if one.leads() > 0 {
			v.Error("the one that is cut off leads")
		}
		killed.Refuse(false)
		g.balanced(one, two)
		one.leaves()
		two.leaves()
		v.Clean()
	})
}

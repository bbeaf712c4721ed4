package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
)

// newPartitionPlan draws a plan with a group of partitions.
func newPartitionPlan(seed uint64, length time.Duration) *plan {
	return drawPlan(seed, length, withPartitions)
}

// groupOperations are the operations of a group.
var groupOperations = []string{"op group lock", "op group leave", "op group resign", "op group return", "op group ask", "op group see"}

// groupFaults are the faults that a group may meet. Near the end of a directory's sequence numbers nobody
// can join or publish.
var groupFaults = slices.DeleteFunc(slices.Clone(faults), func(fault string) bool {
	return slices.Contains([]string{"actor stops", "sequence", "drop", "count", "revoke"}, fault)
})

// groupFaultGroups are faults that affect the same part of a group.
var groupFaultGroups = [][]string{
	{"delete", "rights"},                    // what is known of nodes
	{"late", "slow", "hole", "freeze"},      // deadlines
	{"expire", "close", "kill"},             // ends of members
	{"server away", "cut", "hole"},          // reconnections
	{"follower", "stale", "cut"},            // what a member learns late
	{"generation", "request", "delete"},     // outcomes that are unknown
	{"freeze", "kill"},                      // members that are best and stand still
	{"session node", "expire", "follower"},  // losses
	{"request", "cut"},                      // publications whose answers are lost
	{"kill", "close", "expire", "follower"}, // members that come and go
}

// drawGroup replaces the plan by one of a group, for each seed. A third has lock servers.
func (p *plan) drawGroup(r *rand.Rand) {
	p.entries, p.foreignClients, p.election, p.unlimited = nil, 0, false, true
	p.partitions = pick(r, []int{1, 2, 3, 5, 8, 13})
	p.processes = pick(r, []int{1, 2, 3, 3, 4, 4, 5, 6})
	p.farChance, p.optionChance = pick(r, []float64{0, 0, 0.3, 0.7}), 0
	kinds, groups := groupFaults, groupFaultGroups
	if p.seed%3 == 0 {
		p.drawLockServers(r)
		kinds, groups = slices.Concat(groupFaults, streamFaults), slices.Concat(groupFaultGroups, streamFaultGroups[:4])
	}
	// Changes in a part of the time leave the group at rest in the other one.
	when := pick(r, []phase{always, {3 * time.Minute, time.Minute}, {2 * time.Minute, 10 * time.Second}})
	p.draw(r, groupOperations, 0.6, when, time.Second, 5*time.Second, 20*time.Second)
	p.draw(r, []string{"op group ask", "op group see"}, 0.5, always, 5*time.Second)
	switch r.IntN(4) {
	case 0:
	case 1:
		p.draw(r, kinds, 0.4, when, 5*time.Second, 20*time.Second, time.Minute)
	default:
		p.draw(r, pick(r, groups), 0.8, when, time.Second, 5*time.Second)
		p.draw(r, kinds, 0.1, when, 10*time.Second, time.Minute)
	}
	p.drawServers(r)
}

// groupProcess returns the process of an entry; nil if it does nothing at present.
func (sim *simulation) groupProcess(e entry) *process {
	p := sim.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || p.member == nil || sim.group.stopped {
		return nil
	}
	return p
}

// lockPartition has a program use the name of a partition's lock, or of the list of members, for a lock
// of its own.
func (sim *simulation) lockPartition(e entry) {
	p := sim.groupProcess(e)
	if p == nil || len(sim.requests) > maxOpenRequests {
		return
	}
	r := sim.newRequest(p, e.rand())
	r.timeout = time.Duration(1 + r.rand.Int64N(int64(5*time.Second)))
	n := r.rand.IntN(sim.plan.partitions)
	acc := accessTo(p.locks.Mutex(group.LockPath(groupPath, n)), 0, 1)
	switch r.rand.IntN(4) {
	case 0:
		acc = accessTo(p.locks.RWMutex(group.Members(groupPath)).Read(), 0, 1)
	case 1:
		acc = accessTo(p.locks.RWMutex(group.Members(groupPath)).Write(), 0, rwCapacity)
	}
	r.uses = []use{acc.use}
	r.send(e.name, acc.Member.(lockHandle))
}

// leaveGroup has a member leave. It joins again later.
func (sim *simulation) leaveGroup(e entry) {
	if p := sim.groupProcess(e); p != nil {
		p.member.endJoin()
	}
}

func (m *partitionsMember) endJoin() {
	m.mu.Lock()
	leave, data := m.leave, m.data
	m.mu.Unlock()
	if leave != nil && data == m.joined {
		m.leaving = true
		m.sim.groupChanged(m.sim.now(), "%s is to leave", m.p.name)
		leave()
	}
}

// anyTerm returns a term of the process, nil if it leads nothing.
func (sim *simulation) anyTerm(e entry) *groupTerm {
	p := sim.groupProcess(e)
	if p == nil {
		return nil
	}
	led := slices.DeleteFunc(slices.Clone(p.member.seen), func(t *groupTerm) bool { return t == nil || !t.believed })
	if len(led) == 0 {
		return nil
	}
	return pick(e.rand(), led)
}

// resignPartition has a member resign a partition.
func (sim *simulation) resignPartition(e entry) {
	if t := sim.anyTerm(e); t != nil {
		sim.groupChanged(sim.now(), "partition %d is to be resigned", t.Partition())
		t.Resign()
	}
}

// returnFromTerm has the function of a term return by itself.
func (sim *simulation) returnFromTerm(e entry) {
	if t := sim.anyTerm(e); t != nil && !t.quits {
		t.quits = true
		sim.groupChanged(sim.now(), "the function of partition %d is to return", t.Partition())
		close(t.quit)
	}
}

// askTime is how long a question of a process that no fault affects may take.
const askTime = 20 * time.Second

// askLeaders has a process ask who leads a partition.
func (sim *simulation) askLeaders(e entry) {
	p := sim.groupProcess(e)
	if p == nil {
		return
	}
	asked, n := sim.now(), e.rand().IntN(sim.plan.partitions)
	callAsync(sim, askTime, func(ctx context.Context) (actors.PartitionLeader, error) { return p.member.shards.Leader(ctx, n) }, func(l actors.PartitionLeader, err error) {
		sim.record("%s finds that %s leads %d: %v", p.name, l.Data, n, err)
		switch {
		case err == nil || errors.Is(err, actors.ErrNoLeader):
		case errors.Is(err, actors.ErrNoAuth) && sim.deniedUntil > 0:
		case p.dead || p.isAffected() || p.affectedUntil > asked || sim.lastFault > asked-askTime:
		default:
			sim.fail(sim.now(), "%s: Leader of %d, asked at %v: %v", p.name, n, asked, err)
		}
	})
}

// seeGroup has a process observe the group for a time.
func (sim *simulation) seeGroup(e entry) {
	p := sim.groupProcess(e)
	if p == nil {
		return
	}
	limit := time.Duration(1 + e.rand().Int64N(int64(10*time.Second)))
	callAsync(sim, limit, func(ctx context.Context) (last actors.PartitionGroup, err error) {
		for last = range p.member.shards.Observe(ctx) {
			if len(last.Leaders) != sim.plan.partitions && last.Err == nil {
				err = fmt.Errorf("%d partitions", len(last.Leaders))
			}
		}
		return last, err
	}, func(last actors.PartitionGroup, err error) {
		sim.record("%s has seen %d members, last: %v", p.name, len(last.Members), last.Err)
		if err != nil {
			sim.fail(sim.now(), "%s has seen a group of %v", p.name, err)
		}
	})
}

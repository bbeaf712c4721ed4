package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/partition"
)

// groupState is what the checks of a group know.
type groupState struct {
	serial  int           // of terms
	changed time.Duration // when a member, a term or a lock at a path of the group has changed last
	stopped bool          // nobody joins any more
	asked   time.Duration // when the processes were asked last, at rest

	ledAt []time.Duration // when each partition was led last, or could not be led
	terms []int           // of each partition, since the last rest
	moves int             // changes that may move partitions, since the last rest
	rest  time.Duration   // when the group was last found to be right
}

const (
	// maxUnled is how long a partition may have no leader while no fault has an effect: functions that
	// go on, a pause of up to 10 s after a resignation, and requests.
	maxUnled = 10*time.Second + longestFunction + maxFreeTime
	// restTime is the time after the last change after which each partition is where it belongs: members
	// that wait say so again each 10 s.
	restTime = 45 * time.Second
)

// groupChanged notes a change in the group.
func (sim *simulation) groupChanged(now time.Duration, format string, args ...any) {
	sim.group.changed = now
	sim.group.moves++
	sim.record(format, args...)
}

// isMembersNode reports whether a line of a dump is a node of the member that has joined with the data.
func isMembersNode(line, data string) bool {
	inner := strconv.Quote(data)
	return strings.HasPrefix(line, groupPath+"/") && (strings.HasSuffix(strings.TrimSpace(line), " "+inner) ||
		strings.Contains(line, `\"`+base64.StdEncoding.EncodeToString([]byte(data))+`\"`))
}

// joinedMembers returns the members whose processes are up, and which are not leaving.
func (sim *simulation) joinedMembers() (all []*partitionsMember) {
	for _, m := range sim.members {
		if m.joined != "" && !m.leaving && !m.p.dead && !m.done.Load() {
			all = append(all, m)
		}
	}
	return all
}

// ledBy returns the member whose term of a partition runs.
func (sim *simulation) ledBy(n int) *partitionsMember {
	for _, m := range sim.members {
		if t := m.seen[n]; t != nil && t.believed && t.Err() == nil {
			return m
		}
	}
	return nil
}

// groupLocked reports whether a program has a request for a lock of the group's.
func (sim *simulation) groupLocked() bool {
	return slices.ContainsFunc(sim.requests, func(r *programRequest) bool { return strings.HasPrefix(r.path, groupPath) })
}

// checkGroup checks that each partition is led, unless faults or programs prevent that, and has all
// processes asked when the group is at rest.
func (sim *simulation) checkGroup(now time.Duration, unaffected bool) {
	g := &sim.group
	if sim.plan.partitions == 0 || g.stopped {
		return
	}
	if sim.groupLocked() {
		g.changed = now
		g.moves++
	}
	members := sim.joinedMembers()
	old := slices.DeleteFunc(slices.Clone(members), func(m *partitionsMember) bool { return now < m.since+maxUnled })
	for n := range g.ledAt {
		if !unaffected || len(old) == 0 || sim.groupLocked() || sim.ledBy(n) != nil {
			g.ledAt[n] = now
		}
		if now > g.ledAt[n]+maxUnled {
			sim.fail(now, "partition %d is not led since %v; members are %v", n, g.ledAt[n], names(old))
			return
		}
	}
	if !unaffected {
		g.rest = 0
	}
	if !unaffected || len(members) == 0 || now < max(sim.unaffectedSince, g.changed)+restTime {
		if sim.faultsOver && sim.membersDone() {
			sim.stopMembers()
		}
		return
	}
	if g.asked > g.changed && g.asked > sim.unaffectedSince && !sim.faultsOver {
		return // right, and nothing has changed since
	}
	g.asked = now
	sim.checkPlaces(now, members)
	for _, p := range sim.slots {
		sim.askAtRest(p, members)
	}
	if sim.faultsOver {
		sim.after(5*time.Second, sim.stopMembers)
	}
}

func names(members []*partitionsMember) (all []string) {
	for _, m := range members {
		all = append(all, m.joined)
	}
	return all
}

// checkPlaces checks, at rest, that each partition is led, and that partitions have moved no more often
// than something has changed.
func (sim *simulation) checkPlaces(now time.Duration, members []*partitionsMember) {
	g := &sim.group
	capacity := partition.Capacity(len(members), sim.plan.partitions)
	led := map[string]int{}
	for n := range g.terms {
		m := sim.ledBy(n)
		if m == nil {
			sim.fail(now, "partition %d has no leader at rest", n)
			return
		}
		if led[m.joined]++; led[m.joined] > capacity {
			sim.fail(now, "%s leads more than %d of %d partitions", m.joined, capacity, sim.plan.partitions)
		}
		if g.rest > 0 && g.terms[n] > 2*g.moves {
			sim.fail(now, "partition %d has had %d terms in %d changes since %v", n, g.terms[n], g.moves, g.rest)
		}
		g.terms[n] = 0
	}
	g.rest, g.moves = now, 0
}

// askAtRest has a process ask who leads, and compares that with who does, and with who is to.
func (sim *simulation) askAtRest(p *process, members []*partitionsMember) {
	if p.member == nil {
		return
	}
	type answer struct {
		leaders []actors.PartitionLeader
		group   actors.PartitionGroup
	}
	asked, shards := sim.group.changed, p.member.shards
	callAsync(sim, askTime, func(ctx context.Context) (a answer, err error) {
		for n := range sim.plan.partitions {
			l, err := shards.Leader(ctx, n)
			if err != nil {
				return a, fmt.Errorf("leader of %d: %w", n, err)
			}
			a.leaders = append(a.leaders, l)
		}
		seeing, end := context.WithCancel(ctx)
		defer end()
		a.group = <-shards.Observe(seeing)
		return a, a.group.Err
	}, func(a answer, err error) {
		now := sim.now()
		if sim.group.changed != asked || p.dead || p.isAffected() || sim.activeFaults > 0 || sim.lastFault > sim.group.asked {
			return
		}
		if err != nil {
			sim.fail(now, "%s asks who leads at rest: %v", p.name, err)
			return
		}
		sim.compare(now, p, a.leaders, a.group, members)
	})
}

func (sim *simulation) compare(now time.Duration, p *process, leaders []actors.PartitionLeader, seen actors.PartitionGroup, members []*partitionsMember) {
	var data []string
	ids := make([]uint64, len(seen.Members))
	for i := range seen.Members {
		m := &seen.Members[i]
		data = append(data, string(m.Data))
		ids[i], _ = strconv.ParseUint(m.ID, 16, 64)
	}
	if joined := names(members); !slices.Equal(slices.Sorted(slices.Values(data)), slices.Sorted(slices.Values(joined))) {
		sim.fail(now, "%s sees the members %v, and they are %v", p.name, data, joined)
		return
	}
	for n, place := range partition.Places(ids, sim.plan.partitions) {
		by := sim.ledBy(n)
		if by == nil {
			sim.fail(now, "partition %d has no leader at rest", n)
			return
		}
		if is := string(leaders[n].Data); is != by.joined || leaders[n].Self != (by == p.member) {
			sim.fail(now, "%s finds that %s leads partition %d, itself: %v, and %s does", p.name, is, n, leaders[n].Self, by.joined)
		}
		if at := seen.Leaders[n]; at < 0 || data[at] != by.joined {
			sim.fail(now, "%s sees that member %d of %v leads partition %d, and %s does", p.name, at, data, n, by.joined)
		}
		if best := data[place.Best]; best != by.joined {
			sim.fail(now, "%s leads partition %d at rest, and %s is to", by.joined, n, best)
		}
	}
}

package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/partition"
)

// PartitionLeader is the member that leads a partition.
type PartitionLeader struct {
	// ID distinguishes the members of a group. Each Join has another one.
	ID string
	// Data is what the member has joined with. A program must not write to it.
	Data []byte
	// Self is whether it is the member of this Partitions.
	Self bool
}

// PartitionMember is a member of a group, as ZooKeeper shows it.
type PartitionMember struct {
	PartitionLeader
	// Leads has the partitions that the member leads, and Waits those that it waits for and is to lead,
	// in order.
	Leads, Waits []int
}

// PartitionGroup is the state of a group at one moment. A program must not write to it.
type PartitionGroup struct {
	// Path is the path of the group.
	Path string
	// Members has the members, in the order of their ids.
	Members []PartitionMember
	// Leaders has for each partition the index in Members of its leader, or -1 without a leader.
	Leaders []int
	// Err is why the state cannot be read at present; the rest is then what was read last. It is
	// ErrInvalid if a member has another number of partitions, or is of a later version whose records this
	// one cannot read. That member is left out.
	Err error
}

// Leader returns the member that leads a partition, or ErrNoLeader. It reads it from memory, which
// watches keep fresh: a member publishes what it leads a few milliseconds after it has come to lead. The
// first call blocks until the group has been read, or ctx ends; the later ones return at once. While the
// connection is lost Leader returns the leader that was read last together with ErrSuspended or the other
// reason. The leader may have changed when the answer arrives: the receiver of a message asks the Err
// of its term.
//
// Otherwise the errors are the cause of ctx, ErrClosed, ErrNoAuth, and ErrInvalid for a partition that
// the group does not have, and for another number of partitions than the group has.
func (p *Partitions) Leader(ctx context.Context, n int) (PartitionLeader, error) {
	if err := p.checkCount(ctx); err != nil {
		return PartitionLeader{}, err
	}
	if err := partition.CheckPartition(n, p.count); err != nil {
		return PartitionLeader{}, err
	}
	state, err := p.follower.Read(ctx)
	if err != nil {
		return PartitionLeader{}, err
	}
	at := state.View.Leaders[n]
	if at < 0 {
		return PartitionLeader{}, cmp.Or(state.Err, fmt.Errorf("partition %d of %s: %w", n, p.path, ErrNoLeader))
	}
	return p.leader(&state.View.Members[at]), state.Err
}

func (p *Partitions) leader(m *partition.MemberRecord) PartitionLeader {
	self := p.member.Load()
	return PartitionLeader{ID: m.Member, Data: m.Data, Self: self != nil && self.ID == m.ID}
}

// Observe returns a channel with the state of the group, and then again whenever it changes:
//
//	for group := range shards.Observe(ctx) { show(group) }
//
// A slow reader finds the newest state, not those between, and delays no other part of the program.
// Observe outlives the loss of connections and sessions: see [PartitionGroup]. The channel is closed when
// ctx ends or Locks is closed. If the path or the number of partitions is not acceptable, or ctx is nil,
// the channel has one PartitionGroup with the Err, and is closed.
func (p *Partitions) Observe(ctx context.Context) <-chan PartitionGroup {
	out := make(chan PartitionGroup, 1)
	go func() {
		defer close(out)
		for {
			changed, more := p.show(ctx, out)
			if !more {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// show puts the present state into out. It reports whether there may be another one, at which changed is
// closed.
func (p *Partitions) show(ctx context.Context, out chan PartitionGroup) (changed <-chan struct{}, more bool) {
	if err := p.checkCount(ctx); errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoAuth) {
		replace(out, PartitionGroup{Path: p.path, Err: err})
		return nil, false
	}
	state, changed := p.follower.State()
	if state == nil {
		return changed, true
	}
	replace(out, p.group(state))
	return changed, !errors.Is(state.Err, ErrClosed)
}

func (p *Partitions) group(s *group.Snapshot) PartitionGroup {
	g := PartitionGroup{Path: p.path, Leaders: slices.Repeat([]int{-1}, p.count), Err: cmp.Or(s.Err, s.Wrong)}
	if s.View == nil {
		return g
	}
	for n, at := range s.View.Leaders {
		g.Leaders[n] = int(at)
	}
	for i := range s.View.Members {
		m := &s.View.Members[i]
		g.Members = append(g.Members, PartitionMember{p.leader(m), slices.Collect(m.Leads.All()), slices.Collect(m.Waits.All())})
	}
	return g
}

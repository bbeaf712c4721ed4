//lint:file-ignore SA1012 a nil context is what is tested

package elections

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// isLoss reports whether a term has ended without its function.
func isLoss(err error) bool {
	return errors.Is(err, actors.ErrSessionLost) || errors.Is(err, actors.ErrNodeDeleted) || errors.Is(err, actors.ErrClosed)
}

// Members of three processes share the partitions, and give them away when they leave: after their functions
// have returned, with growing tokens. All processes see who leads.
func TestPartitions(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		const count = 12
		g := newShards(b, count)
		here, there := b.Locks(), b.Locks()
		observer := b.Locks().Partitions(b.LockPath, count)
		_, err := observer.Leader(locktest.Within(b), 0)
		locktest.Is(b, err, actors.ErrNoLeader)

		one := g.join(here, "one")
		g.balanced(one)
		two := g.join(there, "two")
		g.balanced(one, two)
		three := g.join(b.Locks(), "three")
		g.balanced(one, two, three)
		g.agree(observer, map[string]*shard{"one": one, "two": two, "three": three})
		g.agree(two.partitions, map[string]*shard{"one": one, "two": two, "three": three})
		group := <-observer.Observe(locktest.Within(b))
		if len(group.Members) != 3 || len(group.Leaders) != count || group.Err != nil {
			b.Errorf("the group is %+v", group)
		}
		one.leaves()
		locktest.Is(b, one.err, locktest.ErrEnough)
		if one.leads() > 0 {
			b.Errorf("a member that has left leads %d partitions", one.leads())
		}
		g.balanced(two, three)
		again := g.join(here, "again")
		g.balanced(two, three, again)
		two.leaves()
		three.leaves()
		g.balanced(again)
		again.leaves()
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			_, err = observer.Leader(locktest.Within(b), 0)
			return errors.Is(err, actors.ErrNoLeader)
		}, "no leader: %v", &err)
	})
}

// What a group refuses, and with what error.
func TestPartitionsRefuse(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := newShards(b, 4)
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxNodeData = 1000 })
		none := func(*actors.PartitionTerm) { b.Error("a term has begun") }
		ctx := locktest.Within(b)
		for _, count := range []int{-1, 0, 1<<16 + 1} {
			p := locks.Partitions(b.LockPath, count)
			locktest.ExpectClear(b.T, p.Join(ctx, nil, none), fmt.Sprint(count))
			_, err := p.Leader(ctx, 0)
			locktest.ExpectClear(b.T, err, fmt.Sprint(count))
			locktest.ExpectClear(b.T, (<-p.Observe(ctx)).Err, fmt.Sprint(count))
			if p.Of("key") < 0 {
				b.Errorf("Of with %d partitions is negative", count)
			}
		}
		locktest.ExpectClear(b.T, locks.Partitions("no/path", 4).Join(ctx, nil, none), "no/path")
		member := g.join(locks, "member")
		g.balanced(member)
		locktest.ExpectClear(b.T, member.partitions.Join(ctx, nil, none), "another Join")
		locktest.ExpectClear(b.T, member.partitions.Join(ctx, nil, nil), "function")
		locktest.Is(b, member.partitions.Join(nil, nil, none), actors.ErrInvalid)
		other := locks.Partitions(b.LockPath, 5)
		locktest.ExpectClear(b.T, other.Join(ctx, nil, none), "5")
		_, err := other.Leader(ctx, 0)
		locktest.ExpectClear(b.T, err, "5")
		locktest.ExpectClear(b.T, (<-other.Observe(ctx)).Err, "5")
		for _, n := range []int{-1, 4} {
			_, err = member.partitions.Leader(ctx, n)
			locktest.ExpectClear(b.T, err, fmt.Sprint(n))
		}
		locktest.Is(b, locks.Partitions(b.LockPath, 4).Join(ctx, make([]byte, 1000), none), actors.ErrLimit)
		locktest.ExpectClear(b.T, b.Locks().Partitions(b.LockPath, 4).Join(ctx, make([]byte, 400<<10), none), "409600")
		ended, end := context.WithCancelCause(context.Background())
		end(locktest.ErrEnough)
		locktest.Is(b, locks.Partitions(b.LockPath, 4).Join(ended, nil, none), locktest.ErrEnough)
		member.leaves()
	})
}

// Drain has a member end its terms and leave, with what it waits for; Close ends it at once.
func TestPartitionsDrainAndClose(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		g := newShards(b, 8)
		locks, closing := b.Locks(), b.Locks()
		one, two := g.join(locks, "one"), g.join(closing, "two")
		g.balanced(one, two)
		locktest.Must(b, locks.Drain(locktest.Within(b)))
		locktest.Closes(b, one.left, "the Join of a drained member")
		locktest.Is(b, one.err, actors.ErrDraining)
		g.balanced(two)
		locktest.Must(b, closing.Close())
		locktest.Closes(b, two.left, "the Join of closed locks")
		locktest.Is(b, two.err, actors.ErrClosed)
		_, err := two.partitions.Leader(locktest.Within(b), 0)
		locktest.Is(b, err, actors.ErrClosed)
	})
}

// A partition comes back to its best member after a term was resigned from. The other member does not
// lead in between if the best one waits again before the grant is read.
func TestPartitionsResign(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		from, _, term := resigned(b)
		from.after(term)
	})
}

// The other member leads a partition that was resigned from, until its best member waits again.
func TestPartitionsResignToTheOtherMember(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		from, to, term := resigned(v.Fixture)
		from.after(to.after(term))
	})
}

// resigned returns two members, after a term of the first one was resigned from.
func resigned(b *locktest.Fixture) (from, to *shard, term *heldShard) {
	g := newShards(b, 2)
	from, to = g.join(b.Locks(), "one"), g.join(b.Locks(), "two")
	g.balanced(from, to)
	if from.leads() == 0 {
		from, to = to, from
	}
	n := 0
	for p := range g.count {
		if from.has(p) {
			n = p
		}
	}
	term = from.term(n)
	zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.Nodes(b, group.LockPath(g.path, n))) == 2 }, "the other member waits for partition %d", n)
	term.Resign()
	locktest.Closes(b, term.Context().Done(), "the context")
	locktest.Is(b, term.Err(), actors.ErrResigned)
	return from, to, term
}

// After the loss of its session a member ends its terms, and comes back.
func TestPartitionsSessionLoss(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locktest.NeedsZooKeeper(b, "it expires a session")
		g := newShards(b, 6)
		locks := b.Locks()
		one, two := g.join(locks, "one"), g.join(b.Locks(), "two")
		g.balanced(one, two)
		before := one.total.Load()
		one.expire(locks)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return one.total.Load() > before }, "the member leads again")
		g.balanced(one, two)
	})
}

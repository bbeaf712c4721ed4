package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/messages"
)

// Partitions is a group of processes that share a fixed number of partitions. One member at a time leads
// a partition, with a term as in an [Election]. The partitions are spread evenly over the members, and few
// of them move when a member comes or goes.
//
// A member that comes gets its share: another member ends the term of each partition that moves, and
// leads it until its function has returned. When a member leaves, the others lead its partitions as soon
// as its functions have returned. After the loss of a member they do as soon as its session has expired.
// A partition has a lock of its own, which alone decides who leads: members that see different members
// never lead one partition at the same time.
//
// ZooKeeper keeps the number of partitions below the path, in the node count, and it cannot change. Below
// members each member has a node that says what it leads, and below partitions each partition has the
// nodes of its lock.
//
// A Partitions follows its group from its first use until Locks is closed: make one for each group, and
// keep it. Its methods may be called from any goroutine.
type Partitions struct {
	locks    *Locks
	path     string
	count    int
	problem  error
	follower *group.Follower
	counted  atomic.Bool // the number in ZooKeeper is known to be count

	mu     sync.Mutex
	left   chan struct{}                    // closed when the Join has returned; nil without one
	by     string                           // the id of the actor of Singletons that has called it; "" for a program
	member atomic.Pointer[group.Membership] // of that Join; nil without one
}

// Partitions returns the group at path, an absolute path of ZooKeeper whose nodes are created when
// needed, with count partitions: from 1 to 65,536. It does not block or ask ZooKeeper: an unacceptable
// path or count shows at the first use, as ErrInvalid.
func (l *Locks) Partitions(path string, count int) *Partitions {
	p := &Partitions{locks: l, path: path, count: count, problem: cmp.Or(check.Path(path), partition.CheckCount(count))}
	if p.problem == nil {
		p.follower = group.NewFollower(l.manager, path, count)
	}
	return p
}

// Path returns the path of the group.
func (p *Partitions) Path() string { return p.path }

// Count returns the number of partitions.
func (p *Partitions) Count() int { return p.count }

// Of returns the partition of a key, from 0 on. All versions of the library hash the bytes of a key alike.
// Of returns 0 for a count that is not acceptable.
func (p *Partitions) Of(key string) int {
	if p.count < 1 {
		return 0
	}
	return partition.Of(key, p.count)
}

// PartitionTerm is the time for which a member leads one partition. Any goroutine may use it.
type PartitionTerm struct {
	partition int
	term      *campaign.Term
}

// Partition returns the partition that the member leads.
func (t *PartitionTerm) Partition() int { return t.partition }

// Token returns the fencing token of the term, which is greater than those of all earlier terms of the
// partition.
func (t *PartitionTerm) Token() Token { return TokenOf(t.term.Granted) }

// Node returns the full path of the node that holds the partition's lock, for Locks.VerifyToken.
func (t *PartitionTerm) Node() string { return lock.NodeOf(t.term.Granted) }

// Session returns the id of the ZooKeeper session that holds the partition's lock.
func (t *PartitionTerm) Session() int64 { return t.term.Granted.SessionId }

// Context returns a context for the work of the term: a child of Join's. It ends when the member is to
// give the partition away, and at the latest when the term is over. Its cause says why, and its own Err
// looks at the clock.
func (t *PartitionTerm) Context() context.Context { return t.term.Context() }

// Err returns nil while the term lasts, to the knowledge of this process. It looks at the clock, so that
// after a pause it returns the loss of the session before the context has ended. Afterwards errors.Is
// finds ErrSessionLost, ErrNodeDeleted or another reason of a loss, ErrRevoked, ErrSuspended,
// ErrResigned, or the cause of Join's context. It does not block, and cannot know of a pause that comes
// right after the call.
func (t *PartitionTerm) Err() error { return t.term.Err() }

// Resign ends the context of the term, with ErrResigned as its cause, so that the function returns; the
// member then gives the partition away, and campaigns again after a pause. Another member leads it
// meanwhile, if there is one. Resign does not block. A term whose context has ended stays as it is.
func (t *PartitionTerm) Resign() { t.term.End(campaign.ErrResigned) }

// Join has this process be a member of the group until ctx ends, and blocks until then: run it in a
// goroutine. It calls lead for each partition that the member leads, in a goroutine of its own for each
// term:
//
//	err := shards.Join(ctx, []byte("10.0.0.7:7500"), func(term *actors.PartitionTerm) {
//		serve(term.Context(), term.Partition(), term.Token()) // returns when the context ends
//	})
//
// The partition is given away after lead has returned, and not before: lead must return when the
// context of its term ends. After a loss another member may lead before lead has returned: Err tells
// lead, and the token protects resources from it. A lead that returns before the end of the context
// resigns, and the member campaigns again after a pause of up to 10 s, which grows with each such return.
// A panic in lead ends the program, as in any goroutine.
//
// data is what the others get from Leader, such as the address of this process: with the lists of what
// the member leads and waits for, a quarter of a byte for each partition and as much again for the
// encoding, it must fit into a node. More is ErrLimit with Config.MaxNodeData, and otherwise ErrInvalid
// from 512 KiB on.
//
// When ctx ends the contexts of all terms end. Join returns after all functions have returned, the
// partitions are given away, and the member is off the list, with the cause of ctx. Without an answer of
// ZooKeeper it waits for that until the session can have expired. It outlives the loss of the session and
// of the connection, as Election.Campaign does: the terms end, and the member comes back. It also repeats
// requests that failed for a time. Locks.Drain ends it as the end of ctx does, with ErrDraining, and
// Locks.Close with ErrClosed. Other errors are final, too, and end the terms of the member: ErrInvalid, for
// example for a group with another number of partitions and for a second Join before the first one has
// returned, ErrNoAuth, ErrLimit of the data, ErrUnavailable. An actor must not call Join: see Singletons.
func (p *Partitions) Join(ctx context.Context, data []byte, lead func(*PartitionTerm)) error {
	return p.join(ctx, "", data, lead)
}

// join is Join. by is the id of the actor that calls it, or "".
func (p *Partitions) join(ctx context.Context, by string, data []byte, lead func(*PartitionTerm)) error {
	switch {
	case ctx == nil:
		return check.ErrNilContext
	case p.problem != nil:
		return p.problem
	case lead == nil:
		return check.Invalid("function of Join is nil: it must lead the partition of a term")
	}
	if err := p.follower.CheckData(data); err != nil {
		return err
	}
	if err := p.enter(ctx, by); err != nil {
		return err
	}
	defer p.exit()
	if err := p.agreeOnCount(ctx); err != nil {
		return err
	}
	m := p.follower.Join(ctx, slices.Clone(data), func(n int, term *campaign.Term) { lead(&PartitionTerm{n, term}) })
	p.member.Store(m)
	<-m.Done()
	p.member.Store(nil)
	if err := m.Err(); err != nil {
		return err
	}
	return p.ended(ctx)
}

// enter notes that a Join begins. Only a restarted actor waits for the Join of before.
func (p *Partitions) enter(ctx context.Context, by string) error {
	for {
		p.mu.Lock()
		left, same := p.left, by != "" && by == p.by
		if left == nil {
			p.left, p.by = make(chan struct{}), by
		}
		p.mu.Unlock()
		switch {
		case left == nil:
			return nil
		case !same:
			return check.Invalid(fmt.Sprintf("partitions of %s: another Join has not returned yet: it must return before the next one begins", p.path))
		}
		select {
		case <-left:
		case <-ctx.Done():
			return p.ended(ctx)
		}
	}
}

// exit notes that the Join returns.
func (p *Partitions) exit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.left)
	p.left = nil
}

// ended returns the error of a ctx that has ended.
func (p *Partitions) ended(ctx context.Context) error {
	return fmt.Errorf("partitions of %s: %w", p.path, context.Cause(ctx))
}

// agreeOnCount writes the number of partitions if the group has none. It blocks until ZooKeeper has
// answered, or ctx ends.
func (p *Partitions) agreeOnCount(ctx context.Context) error {
	for failed := 0; ; failed++ {
		err := p.tryAgree(ctx)
		if err == nil || !passes(err) && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(campaign.Pause(failed)):
		case <-ctx.Done():
			return p.locks.manager.Session.Explain(p.ended(ctx))
		}
	}
}

// passes reports whether a call that asks ZooKeeper may succeed if it is repeated.
func passes(err error) bool {
	return campaign.IsTemporary(err) || errors.Is(err, ErrSuspended) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN)
}

func (p *Partitions) tryAgree(ctx context.Context) error {
	p.counted.Store(false) // the group may have been deleted since the last Join
	for {
		if err := p.checkCount(ctx); err != nil || p.counted.Load() {
			return err
		}
		// Another process may write it first, or delete it before it is read.
		if _, err := p.locks.SharedCount(group.CountPath(p.path), p.count).TrySet(ctx, Count{Version: -1}, p.count); err != nil {
			return err
		}
	}
}

// checkCount reads the number of partitions in ZooKeeper, until it has been the same once.
func (p *Partitions) checkCount(ctx context.Context) error {
	switch {
	case ctx == nil:
		return check.ErrNilContext
	case p.problem != nil:
		return p.problem
	case p.counted.Load():
		return nil
	}
	seen, err := p.locks.SharedCount(group.CountPath(p.path), p.count).Get(ctx)
	switch {
	case err != nil || seen.Version < 0: // there is no number before the first Join
		return err
	case seen.Value != p.count:
		return partition.WrongCount(p.path, p.count, seen.Value)
	}
	p.counted.Store(true)
	return nil
}

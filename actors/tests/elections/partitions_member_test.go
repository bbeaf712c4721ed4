package elections

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// shards is a group in a test: a ledger of its terms, and which functions run.
type shards struct {
	*locktest.Fixture
	ledger *locktest.Ledger
	path   string
	count  int

	steady atomic.Bool // no term ends of itself any more

	mu      sync.Mutex
	expired map[*actors.Locks]*atomic.Int64
	runs    []map[*heldShard]struct{} // by partition: the functions that have not returned
}

// newShards returns a group below the path of the test, which Clean deletes.
func newShards(b *locktest.Fixture, count int) *shards {
	g := &shards{Fixture: b, ledger: locktest.NewLedger(b), path: b.LockPath, count: count, expired: map[*actors.Locks]*atomic.Int64{}}
	for range count {
		g.runs = append(g.runs, map[*heldShard]struct{}{})
	}
	b.Cleanups = append(b.Cleanups, g.forget)
	return g
}

// forget deletes the number of the partitions, as an operator does who ends a group.
func (g *shards) forget() {
	if slices.Contains(g.LockNodes(), "count") {
		locktest.Must(g, g.Client(g).Delete(g.path+"/count", -1))
	}
}

// heldShard is a term of a member, until the term or the session is lost.
type heldShard struct {
	*actors.PartitionTerm
	locks   *actors.Locks
	epoch   uint64        // of the session when the function began
	expired *atomic.Int64 // nodes of the process with a lower czxid are of a session that the server has ended
}

func (h *heldShard) lost() bool {
	s := h.locks.Session()
	return isLoss(h.PartitionTerm.Err()) || s.Epoch != h.epoch || s.State == messages.SessionState_LOST || h.Token().Czxid < h.expired.Load()
}

// Err implements locktest.Held.
func (h *heldShard) Err() error {
	if h.lost() {
		return actors.ErrSessionLost
	}
	return h.PartitionTerm.Err()
}

// leads reports whether the term goes on, to the knowledge of its process.
func (h *heldShard) leads() bool { return h.PartitionTerm.Err() == nil }

// enter notes that a function begins. Another one may only run if its term is lost: otherwise the
// partition goes after the function has returned.
func (g *shards) enter(term *heldShard) {
	if term.Err() == nil {
		g.ledger.Enter("", term, locktest.Whole(fmt.Sprint("partition ", term.Partition())))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for other := range g.runs[term.Partition()] {
		if !other.lost() && !term.lost() {
			g.Errorf("the function of partition %d begins before another one has returned, whose term has ended by %v", term.Partition(), other.Err())
		}
	}
	g.runs[term.Partition()][term] = struct{}{}
}

func (g *shards) exit(term *heldShard) {
	g.ledger.Leave(term)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.runs[term.Partition()], term)
}

// shard is a member.
type shard struct {
	*shards
	partitions *actors.Partitions
	leave      context.CancelCauseFunc
	left       chan struct{}
	err        error // of Join, once left is closed

	mu     sync.Mutex
	terms  map[int]*heldShard
	newest map[int]*heldShard // those that have ended, too
	total  atomic.Int32       // terms
}

// join starts a member, which leads until its terms end.
func (g *shards) join(locks *actors.Locks, data string) *shard {
	return g.joinWith(locks, data, func(term *actors.PartitionTerm) { <-term.Context().Done() })
}

// joinWith starts a member with the function of its terms.
func (g *shards) joinWith(locks *actors.Locks, data string, lead func(*actors.PartitionTerm)) *shard {
	ctx, leave := context.WithCancelCause(context.Background())
	s := &shard{shards: g, partitions: locks.Partitions(g.path, g.count), leave: leave, left: make(chan struct{}), terms: map[int]*heldShard{}, newest: map[int]*heldShard{}}
	go func() {
		defer close(s.left)
		s.err = s.partitions.Join(ctx, []byte(data), func(term *actors.PartitionTerm) {
			held := &heldShard{term, locks, locks.Session().Epoch, g.expiredOf(locks)}
			g.enter(held)
			s.note(held, true)
			lead(term)
			s.note(held, false)
			g.exit(held)
		})
	}()
	g.Cleanups = append([]func(){s.leaves}, g.Cleanups...)
	g.Cleanup(func() { leave(locktest.ErrEnough) })
	return s
}

func (s *shard) note(term *heldShard, begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begins {
		s.terms[term.Partition()], s.newest[term.Partition()] = term, term
		s.total.Add(1)
	} else {
		delete(s.terms, term.Partition())
	}
}

// leaves ends the member, and waits until it has left.
func (s *shard) leaves() {
	s.Helper()
	s.leave(locktest.ErrEnough)
	locktest.Closes(s, s.left, "the Join of a member")
}

// leads returns how many partitions the member leads.
func (s *shard) leads() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, term := range s.terms {
		if term.leads() {
			n++
		}
	}
	return n
}

// term waits for the member's term of a partition.
func (s *shard) term(n int) (term *heldShard) {
	s.Helper()
	zktest.Eventually(s, s.patience(), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		term = s.terms[n]
		return term != nil && term.leads()
	}, "a term of partition %d", n)
	return term
}

// after waits for a term of the member that comes after a term of the same partition. It may be over by now.
func (s *shard) after(former *heldShard) (term *heldShard) {
	s.Helper()
	zktest.Eventually(s, s.patience(), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		term = s.newest[former.Partition()]
		return term != nil && term.Token().Compare(former.Token()) > 0
	}, "a later term of partition %d", former.Partition())
	return term
}

func (g *shards) patience() time.Duration {
	if g.Virtual() {
		return time.Hour
	}
	return zktest.TimeLimit
}

// balanced waits until the members lead all partitions, none more than its share.
func (g *shards) balanced(members ...*shard) {
	g.Helper()
	most := max((g.count+len(members)-1)/len(members), g.count*11/(len(members)*10))
	var loads []int
	zktest.Eventually(g, g.patience(), func() bool {
		loads = nil
		all := 0
		for _, m := range members {
			loads = append(loads, m.leads())
			all += m.leads()
		}
		return all == g.count && slices.Max(loads) <= most
	}, "the members lead %v of %d partitions, at most %d each", &loads, g.count, most)
}

// agree waits until a handle shows as leaders the members that lead.
func (g *shards) agree(p *actors.Partitions, members map[string]*shard) {
	g.Helper()
	zktest.Eventually(g, g.patience(), func() bool {
		for n := range g.count {
			leader, err := p.Leader(locktest.Within(g), n)
			if err != nil {
				return false
			}
			m := members[string(leader.Data)]
			if m == nil {
				return false
			}
			m.mu.Lock()
			term := m.terms[n]
			m.mu.Unlock()
			if term == nil || !term.leads() || leader.Self != (m.partitions == p) {
				return false
			}
		}
		return true
	}, "Leader shows who leads")
}

// has reports whether the member leads a partition.
func (s *shard) has(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terms[n] != nil && s.terms[n].leads()
}

// expire ends the session of the member at the server, and waits for the next one.
func (s *shard) expire(locks *actors.Locks) {
	s.Helper()
	old := locks.Session()
	s.expireNow(locks)
	s.WaitNewSession(locks, old)
}

// expireNow ends the session of the member at the server, if it has one.
func (s *shard) expireNow(locks *actors.Locks) {
	s.Helper()
	session := locks.Session()
	if session.State != messages.SessionState_CONNECTED {
		return
	}
	expired, conn := s.expiredOf(locks), s.Client(s)
	expired.Store(math.MaxInt64)
	s.Expire(s, session.ID)
	if s.Virtual() {
		expired.Store(s.Embedded().Zxid())
		return
	}
	node, err := conn.Create(s.LockPath+"-now-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	locktest.Must(s, err)
	_, stat, err := conn.Exists(node)
	locktest.Must(s, err)
	locktest.Must(s, conn.Delete(node, -1))
	expired.Store(stat.Czxid)
}

func (g *shards) expiredOf(locks *actors.Locks) *atomic.Int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expired[locks] == nil {
		g.expired[locks] = new(atomic.Int64)
	}
	return g.expired[locks]
}

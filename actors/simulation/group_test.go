package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/messages"
)

// groupPath is the path of the group of partitions.
const groupPath = root + "/group"

// isGroupDirectory reports whether a node is one of those that a group makes for itself, beside the
// directories of queues.
func isGroupDirectory(path string) bool {
	return path == groupPath || path == group.CountPath(groupPath) || path == groupPath+"/partitions"
}

// partitionsMember is a goroutine of a process. It joins the group again and again, until its process ends
// or stopMembers is called.
type partitionsMember struct {
	sim    *simulation
	p      *process
	shards *actors.Partitions
	stop   context.CancelFunc // ends the present Join, and begins no other one
	gone   chan struct{}      // closed when the process ends
	done   atomic.Bool

	mu       sync.Mutex
	data     string // of the present Join; "" without one
	leave    context.CancelFunc
	terms    []*groupTerm // whose functions run, by partition
	problems []string     // what advance has yet to report

	// Only events use these.
	seen    []*groupTerm  // what advance has handled
	joined  string        // the data of the Join that advance has handled
	since   time.Duration // when advance has handled it
	leaving bool          // the present Join is to end
}

// groupTerm is a term whose function runs.
type groupTerm struct {
	*actors.PartitionTerm
	id       int
	quit     chan struct{} // closed to have the function return by itself
	quits    bool
	believed bool
}

// startMember has most of the processes join the group. The others only ask.
func (sim *simulation) startMember(p *process) {
	if sim.plan.partitions == 0 || sim.faultsOver && sim.group.stopped {
		return
	}
	m := &partitionsMember{sim: sim, p: p, shards: p.locks.Partitions(groupPath, sim.plan.partitions),
		gone: make(chan struct{}), terms: make([]*groupTerm, sim.plan.partitions), seen: make([]*groupTerm, sim.plan.partitions)}
	p.member = m
	r := sim.rand(p.name, 12)
	if r.IntN(5) == 0 && p.slot > 0 {
		m.done.Store(true)
		return
	}
	sim.members = append(sim.members, m)
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go m.run(ctx, r.Uint64())
}

// run runs one Join after the other.
func (m *partitionsMember) run(ctx context.Context, seed uint64) {
	defer m.done.Store(true)
	rnd := rand.New(rand.NewPCG(seed, 6))
	for n := 0; ctx.Err() == nil; n++ {
		joined, leave := context.WithCancel(ctx)
		data := fmt.Sprint(m.p.name, "#", n)
		m.setJoin(data, leave)
		err := m.shards.Join(joined, []byte(data), m.lead)
		m.left(data, joined, err)
		leave()
		if errors.Is(err, actors.ErrClosed) {
			return
		}
		pause := time.NewTimer(time.Duration(rnd.Int64N(int64(pick(rnd, []time.Duration{100 * time.Millisecond, 5 * time.Second, 60 * time.Second}))) + rnd.Int64N(1_000_000)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-m.gone:
		}
		pause.Stop()
	}
}

func (m *partitionsMember) setJoin(data string, leave context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data, m.leave = data, leave
}

// left notes that a Join has returned.
func (m *partitionsMember) left(data string, joined context.Context, err error) {
	m.mu.Lock()
	for n, t := range m.terms {
		if t != nil {
			m.problems = append(m.problems, fmt.Sprintf("the Join %s has returned before the function of partition %d: %v", data, n, err))
		}
	}
	m.data, m.leave = "", nil
	m.mu.Unlock()
	m.sim.withState(func() { m.checkLeft(data, joined.Err() != nil, err) })
}

// lead is the function of a term. It returns a moment after the end of the context, or much later.
func (m *partitionsMember) lead(t *actors.PartitionTerm) {
	present := &groupTerm{PartitionTerm: t, quit: make(chan struct{})}
	m.setTerm(present, present)
	select {
	case <-present.quit:
	case <-t.Context().Done():
	}
	// Contexts of several terms end in a random order; their functions return in the order of their pauses.
	r := m.sim.rand(fmt.Sprint(m.p.name, t.Partition(), t.Token()), 13)
	pause := time.Duration(1 + r.Int64N(int64(pick(r, []time.Duration{time.Millisecond, longestFunction}))))
	time.Sleep(pause)
	m.setTerm(present, nil)
}

// longestFunction is how long a function goes on after the end of its context, at most.
const longestFunction = 2 * time.Second

func (m *partitionsMember) setTerm(of, to *groupTerm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := of.Partition()
	if to != nil && m.terms[n] != nil {
		m.problems = append(m.problems, fmt.Sprintf("partition %d has two functions at once", n))
	}
	m.terms[n] = to
}

// endTerms notes the terms that are over.
func (sim *simulation) endTerms(now time.Duration) {
	for _, m := range sim.members {
		m.mu.Lock()
		terms := slices.Clone(m.terms)
		m.mu.Unlock()
		for n, old := range m.seen {
			if old != nil && old.believed && (old != terms[n] || m.isOver(old)) {
				m.endTerm(now, old, old != terms[n])
			}
		}
	}
}

func (sim *simulation) advanceMembers(now time.Duration) {
	for _, m := range sim.members {
		m.advance(now)
	}
	sim.members = slices.DeleteFunc(sim.members, func(m *partitionsMember) bool { return m.p.dead && m.done.Load() })
}

func (m *partitionsMember) advance(now time.Duration) {
	m.mu.Lock()
	terms, data, problems := slices.Clone(m.terms), m.data, m.problems
	m.problems = nil
	m.mu.Unlock()
	for _, text := range problems {
		m.sim.fail(now, "%s: %s", m.p.name, text)
	}
	if m.p.frozen || m.p.dead {
		return
	}
	if data != m.joined {
		m.joined, m.since, m.leaving = data, now, false
		m.sim.groupChanged(now, "%s joins as %q", m.p.name, data)
	}
	for n, t := range terms {
		if t != m.seen[n] {
			m.seen[n] = t
			m.sim.groupChanged(now, "%s: partition %d: a function begins or has returned", m.p.name, n)
			if t != nil {
				m.beginTerm(now, t)
			}
		}
	}
}

// isOver reports whether a term is over although its function runs: it is lost. What a process does that
// stands still or is cut off, after the end of its term, only the token protects others from.
func (m *partitionsMember) isOver(t *groupTerm) bool {
	err := t.Err()
	return m.p.dead || m.p.hasLost(t.Session()) || isLoss(err) || err != nil && m.p.isAffected()
}

func isLoss(err error) bool {
	var lost *messages.Lost
	return errors.As(err, &lost)
}

// beginTerm notes a term whose function has just begun.
func (m *partitionsMember) beginTerm(now time.Duration, t *groupTerm) {
	n := t.Partition()
	m.sim.grants++
	m.sim.group.terms[n]++
	m.sim.group.ledAt[n] = now // the term may be over when checkGroup looks, once a second
	m.sim.group.serial++
	t.id = -200_000_000 - m.sim.group.serial
	m.sim.record("%s leads partition %d as %s: token %v, node %s", m.p.name, n, m.joined, t.Token(), t.Node())
	if t.Err() != nil || m.p.hasLost(t.Session()) {
		return
	}
	t.believed = true
	m.sim.noteGrant(&heldGrant{id: t.id, owner: fmt.Sprint(m.joined, "!", n, "!", m.sim.group.serial), token: t.Token(),
		uses: []use{{group.LockPath(groupPath, n), 0, 1}}, nodes: []string{t.Node()}, session: t.Session(), unaffectedSince: m.p.unaffectedSince, process: m.p.name})
}

// endTerm notes that a term is over.
func (m *partitionsMember) endTerm(now time.Duration, t *groupTerm, returned bool) {
	t.believed = false
	err := t.Err()
	m.sim.groupChanged(now, "%s has led partition %d, the function has returned: %v, %v", m.p.name, t.Partition(), returned, err)
	if isLoss(err) && m.sim.lastFault == 0 {
		m.sim.fail(now, "%s has lost partition %d without a fault: %v", m.p.name, t.Partition(), err)
	}
	m.sim.ended(now, t.id)
}

// checkLeft checks the end of a Join: its error, and that nothing of the member is left after a clean
// one.
func (m *partitionsMember) checkLeft(data string, asked bool, err error) {
	sim, now := m.sim, m.sim.now()
	sim.groupChanged(now, "%s has left as %s: %v", m.p.name, data, err)
	expected := false
	switch {
	case errors.Is(err, actors.ErrClosed):
		expected = m.p.dead
	case errors.Is(err, context.Canceled):
		expected = asked
	case errors.Is(err, actors.ErrNoAuth):
		expected = sim.deniedUntil > 0
	case errors.Is(err, actors.ErrUnavailable):
		expected = sim.lastFault > 0
	}
	if !expected {
		sim.fail(now, "%s: the end of the Join does not fit: %v", m.p.name, err)
	}
	if now < m.since+5*time.Second || m.p.dead || m.p.isAffected() || sim.groupLocked() || sim.lastFault > 0 && now < sim.lastFault+2*sim.plan.sessionTimeout+sim.plan.streamSettleTime() {
		return
	}
	for line := range strings.Lines(sim.server.Dump()) {
		if isMembersNode(line, data) {
			sim.fail(now, "%s: the Join %s has returned before a node of its member is gone: %s", m.p.name, data, strings.TrimSpace(line))
		}
	}
}

// membersDone reports whether nobody joins any more.
func (sim *simulation) membersDone() bool {
	for _, m := range sim.members {
		if !m.done.Load() {
			return false
		}
	}
	return true
}

// stopMembers has all members leave, for good.
func (sim *simulation) stopMembers() {
	sim.group.stopped = true
	sim.groupChanged(sim.now(), "all members leave")
	for _, m := range sim.members {
		m.leaving = true
		m.stop()
	}
}

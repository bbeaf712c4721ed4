package costs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// shardGroup is a group of a benchmark. It knows when each member of this process leads a partition, and
// has an observer that knows what the members publish.
type shardGroup struct {
	b       *testing.B
	s       *zktest.Server
	path    string
	count   int
	servers string // lock servers, which the members use in place of ZooKeeper; "" for none
	members []*shardMember

	mu      sync.Mutex
	leader  []int // the member that leads the partition, or -1
	began   []time.Time
	ended   []time.Time // of the last term
	shown   []bool      // the observer has seen the present leader
	moved   int
	longest time.Duration   // without a leader, of a partition
	late    []time.Duration // from the begin of a term until the observer has seen it
	ids     map[int]uint64  // by member, as published
	seen    []int           // the member that leads the partition, as published; -1 without one
}

// shardMember is a member of the group in this process, with a session of its own.
type shardMember struct {
	network *locktest.Network
	locks   *actors.Locks
	leave   context.CancelFunc
	left    chan struct{}
}

func newShardGroup(b *testing.B, s *zktest.Server, count int) *shardGroup {
	r := &shardGroup{b: b, s: s, path: s.Path(b), count: count, leader: slices.Repeat([]int{-1}, count), began: make([]time.Time, count),
		ended: make([]time.Time, count), shown: make([]bool, count), ids: map[int]uint64{}, seen: slices.Repeat([]int{-1}, count)}
	locks, err := actors.Connect(b.Context(), s.Addr(), actors.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for g := range locks.Partitions(r.path, count).Observe(ctx) {
			r.show(g)
		}
	}()
	b.Cleanup(func() {
		stop()
		<-stopped
		locks.Close()
	})
	return r
}

// connect adds a member, which has not joined yet.
func (r *shardGroup) connect(timeout time.Duration) (member int) {
	m := &shardMember{network: &locktest.Network{}}
	var err error
	if r.servers != "" {
		m.locks, err = remote.Dial(r.b.Context(), r.servers, remote.DialConfig{Insecure: true})
	} else {
		cfg := actors.Config{SessionTimeout: timeout}
		m.network.Config(&cfg)
		m.locks, err = actors.Connect(r.b.Context(), r.s.Addr(), cfg)
	}
	if err != nil {
		r.b.Fatal(err)
	}

	r.members = append(r.members, m)
	return len(r.members) - 1
}

// join has a member join, and returns when that began.
func (r *shardGroup) join(member int) time.Time {
	m := r.members[member]
	var ctx context.Context
	ctx, m.leave = context.WithCancel(context.Background())
	m.left = make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(m.left)
		err := m.locks.Partitions(r.path, r.count).Join(ctx, []byte(strconv.Itoa(member)), func(term *actors.PartitionTerm) {
			r.begin(term.Partition(), member)
			<-term.Context().Done()
			r.end(term.Partition(), member)
		})
		if !errors.Is(err, context.Canceled) {
			r.b.Errorf("member %d: %v", member, err)
		}
	}()
	return begun
}

// close ends all members.
func (r *shardGroup) close() {
	for _, m := range r.members {
		if m.leave != nil {
			m.leave()
		}
	}
	for _, m := range r.members {
		if m.leave != nil {
			<-m.left
		}
		if err := m.locks.Close(); err != nil {
			r.b.Error(err)
		}
	}
}

func (r *shardGroup) begin(p, member int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader[p], r.began[p], r.shown[p] = member, time.Now(), false
	if !r.ended[p].IsZero() {
		r.moved++
		r.longest = max(r.longest, time.Since(r.ended[p]))
	}
}

func (r *shardGroup) end(p, member int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[p] = time.Now()
	if r.leader[p] == member {
		r.leader[p] = -1
	}
}

// show takes in what the observer sees.
func (r *shardGroup) show(g actors.PartitionGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]int, len(g.Members))
	for i, m := range g.Members {
		members[i], _ = strconv.Atoi(string(m.Data))
		r.ids[members[i]], _ = strconv.ParseUint(m.ID, 16, 64)
	}
	for p, at := range g.Leaders {
		r.seen[p] = -1
		if at < 0 {
			continue
		}
		r.seen[p] = members[at]
		if r.seen[p] == r.leader[p] && !r.shown[p] {
			r.shown[p] = true
			r.late = append(r.late, time.Since(r.began[p]))
		}
	}
}

// await waits until each partition is led by the member that shall lead it, and reports when the last
// one was, and about those that moved. Members of other processes count as the observer sees them.
func (r *shardGroup) await(step string, begun time.Time, members ...int) {
	r.b.Helper()
	var want []int
	for !r.settled(&want, members) {
		if time.Since(begun) > 5*time.Minute {
			r.b.Fatalf("%s: the partitions are not where they belong after %v", step, time.Since(begun))
		}
		<-time.After(time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	load, last := map[int]int{}, begun
	for p, m := range want {
		load[m]++
		if r.began[p].After(last) {
			last = r.began[p]
		}
	}
	most := 0
	for _, n := range load {
		most = max(most, n)
	}
	r.b.ReportMetric(last.Sub(begun).Seconds(), "s-"+step)
	r.b.ReportMetric(float64(r.moved), "moved-"+step)
	r.b.ReportMetric(float64(r.longest.Milliseconds()), "ms-"+step)
	r.b.ReportMetric(float64(most*len(members))/float64(r.count), "load-"+step)
}

// settled reports whether each partition is led by the member that shall lead it: by want, which it
// computes when all members are known.
func (r *shardGroup) settled(want *[]int, members []int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *want == nil {
		var ids []uint64
		for _, m := range members {
			if id, known := r.ids[m]; known {
				ids = append(ids, id)
			}
		}
		if len(ids) < len(members) {
			return false
		}
		for _, place := range partition.Places(ids, r.count) {
			*want = append(*want, members[place.Best])
		}
	}
	for p, m := range *want {
		leader := r.leader[p]
		if m >= len(r.members) { // of another process
			leader = r.seen[p]
		}
		if leader != m {
			return false
		}
	}
	return true
}

// forget has the next step begin: it forgets what has moved, and all requests.
func (r *shardGroup) forget() {
	for _, m := range r.members {
		m.network.TakeRequests()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved, r.longest, r.late = 0, 0, nil
	for p, leader := range r.leader {
		if leader < 0 && r.seen[p] >= 0 { // another process leads it until it is killed
			r.ended[p] = time.Now()
		}
	}
}

// rest waits until the members have published all, and reports the requests of the step for each partition
// that has moved, and how late the observer saw the last one.
func (r *shardGroup) rest(step string) {
	var before, total int
	for quiet := 0; quiet < 5; quiet++ {
		<-time.After(200 * time.Millisecond)
		if total = len(r.requests()); total != before {
			before, quiet = total, 0
		}
	}
	kinds := map[embedded.Op]int{}
	for _, op := range r.requests() {
		kinds[op]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b.Logf("%s: %d moved, %d requests of %d members: %v", step, r.moved, total, len(r.members), kinds)
	if r.moved > 0 {
		r.b.ReportMetric(float64(total)/float64(r.moved), "requests-"+step)
	}
	if len(r.late) > 0 {
		r.b.ReportMetric(float64(slices.Max(r.late).Milliseconds()), "ms-late-"+step)
	}
	for p, shown := range r.shown {
		if !shown && r.leader[p] >= 0 {
			r.b.Errorf("%s: the observer has not seen the leader of partition %d", step, p)
			return
		}
	}
}

func (r *shardGroup) requests() (all []embedded.Op) {
	for _, m := range r.members {
		all = append(all, m.network.Requests()...)
	}
	return all
}

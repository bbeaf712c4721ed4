package costs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// BenchmarkPartitions has three members share partitions, one after the other, of which one leaves and another
// one is killed. It reports when all partitions were led by the right number of members, the
// longest time that a partition was without a leader at each step, and how many moved. With the least
// reserve it is the bar of a group: 1,024 partitions.
func BenchmarkPartitions(b *testing.B) {
	for _, count := range []int{1024, 20_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := ownServer(b, zktest.Heap(2048))
			for b.Loop() {
				measurePartitions(b, s, count)
			}
		})
	}
}

// shardRecord is who leads each partition of a group.
type shardRecord struct {
	mu      sync.Mutex
	leader  []int       // the member, or -1
	ended   []time.Time // of the last term
	load    map[int]int
	moved   int
	longest time.Duration // without a leader, of a partition
}

func (r *shardRecord) begin(p, member int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader[p] = member
	r.load[member]++
	if !r.ended[p].IsZero() {
		r.moved++
		r.longest = max(r.longest, time.Since(r.ended[p]))
	}
}

func (r *shardRecord) end(p, member int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[p] = time.Now()
	r.load[member]--
	if r.leader[p] == member {
		r.leader[p] = -1
	}
}

// await waits until the members lead all partitions, each at most its share, and reports the step.
func (r *shardRecord) await(b *testing.B, step string, begun time.Time, members ...int) {
	b.Helper()
	most := max((len(r.leader)+len(members)-1)/len(members), len(r.leader)*11/(len(members)*10))
	for {
		r.mu.Lock()
		total, right := 0, true
		for _, m := range members {
			total += r.load[m]
			right = right && r.load[m] <= most
		}
		if right && total == len(r.leader) {
			b.ReportMetric(time.Since(begun).Seconds(), "s-"+step)
			b.ReportMetric(float64(r.moved), "moved-"+step)
			b.ReportMetric(float64(r.longest.Milliseconds()), "ms-"+step)
			r.moved, r.longest = 0, 0
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if time.Since(begun) > 2*time.Minute {
			b.Fatalf("%s: the members lead %v", step, r.load)
		}
		<-time.After(time.Millisecond)
	}
}

func measurePartitions(b *testing.B, s *zktest.Server, count int) {
	path := s.Path(b)
	r := &shardRecord{leader: make([]int, count), ended: make([]time.Time, count), load: map[int]int{}}
	var locks []*actors.Locks
	var leave []context.CancelFunc
	var left []chan struct{}
	join := func() time.Time {
		i := len(locks)
		l, err := actors.Connect(context.Background(), s.Addr(), actors.Config{SessionTimeout: 4 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		locks, leave, left = append(locks, l), append(leave, cancel), append(left, make(chan struct{}))
		begun := time.Now()
		go func() {
			defer close(left[i])
			err := l.Partitions(path, count).Join(ctx, []byte("10.0.0.7:7500"), func(term *actors.PartitionTerm) {
				r.begin(term.Partition(), i)
				<-term.Context().Done()
				r.end(term.Partition(), i)
			})
			if !errors.Is(err, context.Canceled) && !errors.Is(err, actors.ErrClosed) {
				b.Errorf("member %d: %v", i, err)
			}
		}()
		return begun
	}
	before := heap()
	r.await(b, "first", join(), 0)
	r.await(b, "second", join(), 0, 1)
	r.await(b, "third", join(), 0, 1, 2)
	runtime.GC()
	b.ReportMetric((heap()-before)/3/1e6, "MB-member")
	begun := time.Now()
	leave[2]()
	r.await(b, "leave", begun, 0, 1)
	<-left[2]
	for i, cancel := range leave {
		cancel()
		<-left[i]
		if err := locks[i].Close(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkPartitionsLeader asks who leads a partition, in a process that follows the group.
func BenchmarkPartitionsLeader(b *testing.B) {
	s := zktest.Embedded(b)
	locks, err := actors.Connect(context.Background(), s.Addr(), actors.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	p := locks.Partitions(s.Path(b), 1024)
	ctx, cancel := context.WithCancel(context.Background())
	led := make(chan int, 1024)
	left := make(chan struct{})
	go func() {
		defer close(left)
		p.Join(ctx, []byte("data"), func(term *actors.PartitionTerm) {
			led <- term.Partition()
			<-term.Context().Done()
		})
	}()
	for range 1024 {
		<-led
	}
	for _, err = p.Leader(ctx, 5); err != nil; _, err = p.Leader(ctx, 5) {
		<-time.After(time.Millisecond)
	}
	for b.Loop() {
		if _, err := p.Leader(ctx, 5); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-left
}

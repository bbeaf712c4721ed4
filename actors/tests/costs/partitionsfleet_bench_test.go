package costs

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var (
	fleetPartitions = flag.Int("partitions", 1024, "how many partitions BenchmarkPartitionsFleet has")
	fleetMembers    = flag.Int("members", 64, "how many members BenchmarkPartitionsFleet has")
)

// BenchmarkPartitionsFleet has many members share partitions. It reports how long it takes until all are
// led by the right number of members when all members come at one moment, when one more comes and when it
// leaves again, the memory of a member, and the server's watches.
func BenchmarkPartitionsFleet(b *testing.B) {
	s := ownServer(b, zktest.Heap(2048), zktest.Setting("maxClientCnxns", "0"))
	for b.Loop() {
		measurePartitionsFleet(b, s, *fleetPartitions, *fleetMembers)
	}
}

func measurePartitionsFleet(b *testing.B, s *zktest.Server, count, members int) {
	path := s.Path(b)
	r := &shardRecord{leader: make([]int, count), ended: make([]time.Time, count), load: map[int]int{}}
	ctx, end := context.WithCancel(b.Context())
	var all []*actors.Locks
	var numbers []int
	var joined sync.WaitGroup
	join := func(ctx context.Context, i int) {
		l := all[i]
		joined.Go(func() {
			err := l.Partitions(path, count).Join(ctx, []byte("10.0.0.7:7500"), func(term *actors.PartitionTerm) {
				r.begin(term.Partition(), i)
				<-term.Context().Done()
				r.end(term.Partition(), i)
			})
			if !errors.Is(err, context.Canceled) {
				b.Errorf("member %d: %v", i, err)
			}
		})
	}
	before := heap()
	for range members + 1 {
		l, err := actors.Connect(ctx, s.Addr(), actors.Config{SessionTimeout: 40 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		all = append(all, l)
	}
	begun := time.Now()
	for i := range members {
		numbers = append(numbers, i)
		join(ctx, i)
	}
	r.await(b, "come", begun, numbers...)
	runtime.GC()
	b.ReportMetric((heap()-before)/float64(members)/1e6, "MB/member")
	b.ReportMetric(float64(s.Watches(b)), "watches")
	one, leave := context.WithCancel(ctx)
	begun = time.Now()
	join(one, members)
	r.await(b, "onemore", begun, append(numbers, members)...)
	begun = time.Now()
	leave()
	r.await(b, "leave", begun, numbers...)
	end()
	joined.Wait()
}

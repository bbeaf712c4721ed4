package costs

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// BenchmarkPartitions has three members come to a group, one after the other, of which one leaves. It
// reports for each step when each partition was led by the member that shall lead it (s), how many moved,
// the longest time that one of them was without a leader (ms), the load of the member with the most in the
// ratio to the mean, the requests of all members for each that moved, and how late an observer knew the
// last leader (ms-late). What the members publish counts, too.
func BenchmarkPartitions(b *testing.B) {
	for _, count := range []int{1024, 20_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := ownServer(b, zktest.Heap(2048))
			for b.Loop() {
				measurePartitions(newShardGroup(b, s, count))
			}
		})
	}
}

// BenchmarkPartitionsServer is BenchmarkPartitions through a lock server with the limits that lockd has by
// default.
func BenchmarkPartitionsServer(b *testing.B) {
	for _, count := range []int{1024, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := ownServer(b, zktest.Heap(2048))
			server := locktest.StartProcess(b, s.Addr(), 30*time.Second, "")
			server.Send("serve 127.0.0.1:0")
			address := server.Expect("serving")
			for b.Loop() {
				r := newShardGroup(b, s, count)
				r.servers = address
				measurePartitions(r)
			}
		})
	}
}

func measurePartitions(r *shardGroup) {
	b, before := r.b, heap()
	var all []int
	for _, step := range []string{"first", "second", "third"} {
		all = append(all, r.connect(4*time.Second))
		r.forget()
		r.await(step, r.join(len(all)-1), all...)
		r.rest(step)
	}
	runtime.GC()
	b.ReportMetric((heap()-before)/3/1e6, "MB-member")
	r.forget()
	begun := time.Now()
	r.members[2].leave()
	r.await("leave", begun, 0, 1)
	r.rest("leave")
	r.close()
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

package costs

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var (
	fleetPartitions = flag.Int("partitions", 1024, "how many partitions BenchmarkPartitionsFleet has")
	fleetMembers    = flag.Int("members", 64, "how many members BenchmarkPartitionsFleet has")
)

// BenchmarkPartitionsFleet has many members share partitions: all come at one moment, one more comes, and
// it leaves again. It reports what BenchmarkPartitions does, the memory of a member, and the server's
// watches.
func BenchmarkPartitionsFleet(b *testing.B) {
	s := ownServer(b, zktest.Heap(2048), zktest.Setting("maxClientCnxns", "0"))
	for b.Loop() {
		measurePartitionsFleet(b, s, *fleetPartitions, *fleetMembers)
	}
}

func measurePartitionsFleet(b *testing.B, s *zktest.Server, count, members int) {
	before, r := heap(), newShardGroup(b, s, count)
	var all []int
	for range members {
		all = append(all, r.connect(40*time.Second))
	}
	one := r.connect(40 * time.Second)
	begun := time.Now()
	for _, member := range all {
		r.join(member)
	}
	r.await("come", begun, all...)
	runtime.GC()
	b.ReportMetric((heap()-before)/float64(members)/1e6, "MB/member")
	b.ReportMetric(float64(s.Watches(b)), "watches")
	r.rest("come")
	r.forget()
	r.await("onemore", r.join(one), append(all, one)...)
	r.rest("onemore")
	r.forget()
	begun = time.Now()
	r.members[one].leave()
	r.await("leave", begun, all...)
	r.rest("leave")
	r.close()
}

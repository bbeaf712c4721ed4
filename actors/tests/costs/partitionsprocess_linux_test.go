package costs

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

var restingTime = flag.Duration("resting", time.Minute, "for how long BenchmarkPartitionsProcess measures a member at rest")

func init() {
	processCommands["share"] = share
	processCommands["rest"] = rest
}

// BenchmarkPartitionsProcess has three members share 1,024 partitions, one of them in a process of its own.
// It reports the processor time of that process at rest, in percent of a core, and the memory that it
// has in all. Then it kills the process, and reports when the others lead all.
func BenchmarkPartitionsProcess(b *testing.B) {
	const timeout = 4 * time.Second
	s := ownServer(b)
	for b.Loop() {
		r := newShardGroup(b, s, 1024)
		all := []int{r.connect(timeout), r.connect(timeout)}
		for _, member := range all {
			r.join(member)
		}
		other := len(all)
		p := locktest.StartProcess(b, s.Addr(), timeout, "")
		begun := time.Now()
		p.Send("share %s %d %d", r.path, r.count, other)
		r.await("come", begun, append(all, other)...)
		r.rest("come")
		p.Send("rest %v", *restingTime)
		var used, memory float64
		fmt.Sscan(p.Expect("rested"), &used, &memory)
		b.ReportMetric(100*used/restingTime.Seconds(), "%-core")
		b.ReportMetric(memory, "MB-process")
		r.forget()
		begun = time.Now()
		p.Kill()
		r.await("kill", begun, all...)
		r.rest("kill")
		r.close()
	}
}

// ---- the program in the process

// share has the process join a group: its path, the number of partitions, and the data of the member.
func share(p *locktest.Program, rest string) {
	var path, data string
	var count int
	fmt.Sscan(rest, &path, &count, &data)
	go func() {
		err := p.Locks.Partitions(path, count).Join(context.Background(), []byte(data), func(term *actors.PartitionTerm) { <-term.Context().Done() })
		p.Print("left: %v", err)
	}()
}

// rest prints the processor time that the process uses within a duration, in seconds, and the memory that
// it has, in MB.
func rest(p *locktest.Program, text string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.Print("cannot measure: %v", err)
		return
	}
	before, _ := processorTime()
	<-time.After(d)
	after, memory := processorTime()
	p.Print("rested %s %s", strconv.FormatFloat((after-before).Seconds(), 'f', 6, 64), strconv.FormatFloat(memory, 'f', 1, 64))
}

// processorTime returns how long this process has run on processors, and its greatest resident memory, in MB.
func processorTime() (used time.Duration, memory float64) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), float64(usage.Maxrss) / 1024
}

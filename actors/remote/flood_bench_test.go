package remote_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// One client asks for 9,000 locks at one moment, none of which was used before, and another one for a
// lock, again and again. "granted" is the time until the first client has all of its locks, "first" and
// "lock" are of the second client's locks, and "released" of one beside the release of the 9,000.
func BenchmarkBesideFlood(b *testing.B) {
	for _, zk := range []*zktest.Server{zktest.Embedded(b), zktest.Real(b)} {
		for _, beside := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/beside=%v", zk.Name(), beside), func(b *testing.B) { benchFlood(b, zk, beside) })
		}
	}
}

func benchFlood(b *testing.B, zk *zktest.Server, beside bool) {
	_, greedy, addr := benchServerOf(b, zk)
	honest, err := remote.Dial(b.Context(), addr, remote.DialConfig{Insecure: true})
	if err != nil {
		b.Fatal(err)
	}
	defer honest.Close()
	var firsts, worsts, granted, released []time.Duration
	for round := range b.N {
		var all []*actors.Future[*actors.Grant]
		begin := time.Now()
		for i := range 9000 {
			all = append(all, greedy.Mutex(fmt.Sprintf("/flood%d-%v-%d/%d", round, beside, b.N, i)).Acquire(b.Context()))
		}
		done := make(chan time.Duration, 1)
		go func() {
			for _, f := range all {
				if _, err := f.Wait(b.Context()); err != nil {
					b.Error(err)
				}
			}
			done <- time.Since(begin)
		}()
		for first := true; beside && len(done) == 0; first = false {
			at := time.Now()
			lockUnlock(b, honest.Mutex(fmt.Sprintf("/honest%d-%d", b.N, round)))
			if worsts = append(worsts, time.Since(at)); first {
				firsts = append(firsts, time.Since(at))
			}
		}
		granted = append(granted, <-done)
		for _, f := range all {
			if g, err := f.Wait(b.Context()); err == nil {
				g.Release()
			}
		}
		if beside {
			at := time.Now()
			lockUnlock(b, honest.Mutex(fmt.Sprintf("/released%d", round)))
			released = append(released, time.Since(at))
		}
		lockUnlock(b, greedy.Mutex("/end"))
		time.Sleep(time.Second)
	}
	report := func(name string, all []time.Duration) {
		slices.Sort(all)
		if len(all) > 0 {
			b.ReportMetric(float64(all[len(all)/2].Milliseconds()), name+"-ms")
			b.ReportMetric(float64(all[len(all)-1].Milliseconds()), "most-"+name+"-ms")
		}
	}
	report("granted", granted)
	report("first", firsts)
	report("lock", worsts)
	report("released", released)
	b.ReportMetric(float64(len(worsts))/float64(b.N), "locks")
	b.ReportMetric(0, "ns/op")
}

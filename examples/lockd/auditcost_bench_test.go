//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// What the audit costs a real lockd: grants a second of 64 clients with a lock each, and lockd's time of the processor for a
// grant with its release, in rounds that alternate between lockd with and without -audit. Give a number of rounds:
//
//	go test ./examples/lockd -run none -bench AuditOfLockd -benchtime 8x
func BenchmarkAuditOfLockd(b *testing.B) {
	const clients, seconds = 64, 4
	zk := zktest.Embedded(b)
	kinds := []string{"plain", "audit"}
	grants, cpu := map[string]float64{}, map[string]float64{}
	for round := range b.N {
		for i := range kinds {
			kind := kinds[(round+i)%2]
			var flags []string
			if kind == "audit" {
				flags = []string{"-audit", filepath.Join(b.TempDir(), "audit")}
			}
			n, used := auditRound(b, zk, fmt.Sprint(zk.Path(b), "/", round, kind), clients, seconds*time.Second, flags...)
			grants[kind] += n
			cpu[kind] += used.Seconds()
			b.Logf("%s: %.0f grants a second, %.1f us of lockd each", kind, n/seconds, used.Seconds()*1e6/n)
		}
	}
	each := func(kind string) float64 { return cpu[kind] * 1e6 / grants[kind] }
	b.ReportMetric(grants["plain"]/float64(b.N*seconds), "grants/s")
	b.ReportMetric((grants["audit"]/grants["plain"]-1)*100, "%grants")
	b.ReportMetric(each("plain"), "cpu-us/grant")
	b.ReportMetric(each("audit")-each("plain"), "audit-cpu-us/grant")
}

// auditRound has a lockd serve clients for a time, and returns their grants and its time of the processor meanwhile.
func auditRound(b *testing.B, zk *zktest.Server, path string, clients int, d time.Duration, flags ...string) (float64, time.Duration) {
	p := start(b, zk, append([]string{"-insecure"}, flags...)...)
	var grants atomic.Int64
	var using sync.WaitGroup
	end := make(chan struct{})
	for i := range clients {
		mu := p.client(b).Mutex(fmt.Sprint(path, "-", i))
		using.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				g, err := mu.Lock(b.Context())
				if err == nil {
					err = g.Unlock(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
				grants.Add(1)
			}
		})
	}
	time.Sleep(d)
	close(end)
	using.Wait()
	p.signal(b, syscall.SIGKILL)
	<-p.ended
	return float64(grants.Load()), p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

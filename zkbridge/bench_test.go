package zkbridge

import (
	"fmt"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/bare"
)

// BenchmarkCycle is create and release through the bridge.
func BenchmarkCycle(b *testing.B) {
	b.Run("embedded", func(b *testing.B) { benchmarkCycle(b, zktest.Embedded(b)) })
	b.Run("zookeeper", func(b *testing.B) { benchmarkCycle(b, zktest.Real(b)) })
}

func benchmarkCycle(b *testing.B, s *zktest.Server) {
	bridge := connected(b, Config{Servers: s.Addr()})
	for _, n := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("parallel=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			dir := s.Path(b)
			var wg sync.WaitGroup
			for i := range n {
				rounds := b.N / n
				if i < b.N%n {
					rounds++
				}
				wg.Go(func() { cycles(b, bridge, fmt.Sprintf("%s-%d", dir, i%8), rounds) })
			}
			wg.Wait()
		})
	}
}

func cycles(b *testing.B, bridge *internals, dir string, rounds int) {
	answers := make(mailbox, 1)
	epoch := bridge.Session().Epoch
	for i := range rounds {
		bridge.Ref().SendCreate(&messages.Create{Id: uint64(i), Epoch: epoch, Directory: dir, Prefix: "n-", DirectoryExists: true}, answers)
		created, ok := (<-answers).(*messages.Created)
		if !ok {
			b.Error("create failed")
			return
		}
		bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: uint64(i), Epoch: epoch, Directory: dir, Node: created.GetNode()}, answers)
		if _, ok := (<-answers).(*messages.NodeReleased); !ok {
			b.Error("release failed")
			return
		}
	}
}

// BenchmarkBurst is n creates in one directory at once, and their releases. What each
// costs must not grow with n.
func BenchmarkBurst(b *testing.B) {
	s := zktest.Embedded(b)
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bridge, dir := connected(b, Config{Servers: s.Addr()}), s.Path(b)
			for b.Loop() {
				burst(b, bridge, dir, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/cycle")
		})
	}
}

func burst(b *testing.B, bridge *internals, dir string, n int) {
	answers, epoch := make(mailbox, n), bridge.Session().Epoch
	for i := range n {
		bridge.Ref().SendCreate(&messages.Create{Id: uint64(i), Epoch: epoch, Directory: dir, Prefix: "n-", DirectoryExists: true}, answers)
	}
	for i := range 2 * n {
		switch m := (<-answers).(type) {
		case *messages.Created:
			bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: m.Id, Epoch: epoch, Directory: dir, Node: m.Node, Relaxed: true}, answers)
		case *messages.NodeReleased:
		default:
			b.Fatalf("answer %d is %v", i, m)
		}
	}
}

// BenchmarkNewDirectories is n creates at once, each in a new directory: through the bridge, and
// bare, by the same transactions.
func BenchmarkNewDirectories(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *zktest.Server{
		"embedded":  func(t testing.TB) *zktest.Server { return zktest.Embedded(t) },
		"zookeeper": func(t testing.TB) *zktest.Server { return zktest.Own(t, zktest.Heap(2048)) },
	} {
		for _, n := range []int{1000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d/bridge", name, n), func(b *testing.B) {
				bridge := connected(b, Config{Servers: start(b).Addr()})
				benchmarkNewDirectories(b, n, func(dir string) { createInNew(b, bridge, dir, n) })
			})
			b.Run(fmt.Sprintf("%s/%d/bare", name, n), func(b *testing.B) {
				peer := bare.Connect(b, start(b))
				benchmarkNewDirectories(b, n, func(dir string) {
					peer.MakeDirectory(dir)
					peer.Mutexes(dir, n)
				})
			})
		}
	}
}

func benchmarkNewDirectories(b *testing.B, n int, create func(dir string)) {
	round := 0
	for b.Loop() {
		round++
		create(fmt.Sprintf("/round-%d", round))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/create")
}

func createInNew(b *testing.B, bridge *internals, dir string, n int) {
	answers, epoch := make(mailbox, n), bridge.Session().Epoch
	for i := range n {
		bridge.Ref().SendCreate(&messages.Create{Id: uint64(i), Epoch: epoch, Directory: fmt.Sprintf("%s/%d", dir, i), Prefix: "n-"}, answers)
	}
	for range n {
		if m, ok := (<-answers).(*messages.Created); !ok {
			b.Fatal(m)
		}
	}
}

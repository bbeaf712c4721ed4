package zkbridge

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
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

func cycles(b *testing.B, bridge *Bridge, dir string, rounds int) {
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

func burst(b *testing.B, bridge *Bridge, dir string, n int) {
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
// bare, by the same transactions. Beside the bare ones one node after the other is made elsewhere:
// ms-beside is how long the slowest took, to compare with that of BenchmarkNewPaths of package
// actors.
func BenchmarkNewDirectories(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *zktest.Server{
		"embedded":  func(t testing.TB) *zktest.Server { return zktest.Embedded(t) },
		"zookeeper": func(t testing.TB) *zktest.Server { return zktest.Own(t, zktest.Heap(2048)) },
	} {
		for _, n := range []int{1000, 20_000, 100_000} {
			for kind, create := range map[string]func(*testing.B, *Bridge, string, int){"bridge": createInNew, "bare": createBare} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, n, kind), func(b *testing.B) {
					s := start(b)
					bridge := connected(b, Config{Servers: s.Addr()})
					for b.Loop() {
						dir := s.Path(b)
						if err := zkconn.MakeDirectory(bridge.client(), dir); err != nil {
							b.Fatal(err)
						}
						create(b, bridge, dir, n)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/create")
				})
			}
		}
	}
}

// client returns the bridge's client.
func (b *Bridge) client() (c zkconn.Client) {
	b.runInActor(func(a *bridgeActor) { c = a.epoch.client })
	return c
}

func createInNew(b *testing.B, bridge *Bridge, dir string, n int) {
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

func createBare(b *testing.B, bridge *Bridge, dir string, n int) {
	const size = 63 // directories in one transaction, as the writer has them
	end, slowest := make(chan struct{}), make(chan time.Duration)
	go createBeside(bridge, dir, end, slowest)
	defer func() {
		close(end)
		b.ReportMetric(float64((<-slowest).Microseconds())/1000, "ms-beside")
	}()
	sendBare(b, bridge, n, size, func(i int) []zkconn.Op {
		path := fmt.Sprintf("%s/%d", dir, i)
		return []zkconn.Op{bareContainer(bridge, path), bareNode(bridge, path+"/n-")}
	})
}

// createBeside makes one node in dir after the other until end is closed, and then sends the time
// of the slowest.
func createBeside(bridge *Bridge, dir string, end <-chan struct{}, slowest chan<- time.Duration) {
	var longest time.Duration
	done := make(chan struct{})
	for {
		select {
		case <-end:
			slowest <- longest
			return
		default:
			began := time.Now()
			bridge.client().Multi([]zkconn.Op{bareNode(bridge, dir+"/beside-")}, func([]zk.MultiResponse, error) { done <- struct{}{} })
			<-done
			longest = max(longest, time.Since(began))
		}
	}
}

// BenchmarkBareSemaphores is what n semaphores on new paths write, each with one permit: by
// transactions of the size that the writer has, and by nothing else. Compare it to
// BenchmarkNewPaths of package actors.
func BenchmarkBareSemaphores(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *zktest.Server{
		"embedded":  func(t testing.TB) *zktest.Server { return zktest.Embedded(t) },
		"zookeeper": func(t testing.TB) *zktest.Server { return zktest.Own(t, zktest.Heap(2048)) },
	} {
		for _, n := range []int{1000, 2000, 4000, 8000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				s := start(b)
				bridge := connected(b, Config{Servers: s.Addr()})
				for b.Loop() {
					dir := s.Path(b)
					if err := zkconn.MakeDirectory(bridge.client(), dir); err != nil {
						b.Fatal(err)
					}
					path := func(i int) string { return fmt.Sprintf("%s/%d", dir, i) }
					const name = "_c_4f2504e0-4f89-11d3-9a0c-0305e82c3301-"
					sendBare(b, bridge, n, 42, func(i int) []zkconn.Op {
						return []zkconn.Op{bareContainer(bridge, path(i)), bareContainer(bridge, path(i)+"/locks"),
							bareNode(bridge, path(i)+"/locks/"+name+"lock-")}
					})
					sendBare(b, bridge, n, 63, func(i int) []zkconn.Op {
						return []zkconn.Op{bareContainer(bridge, path(i)+"/leases"), bareNode(bridge, path(i)+"/leases/"+name+"lease-")}
					})
					sendBare(b, bridge, n, 127, func(i int) []zkconn.Op {
						return []zkconn.Op{{Kind: zkconn.OpDelete, Version: zkconn.AnyVersion,
							Path: path(i) + "/locks/" + name + "lock-0000000000"}}
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/lock")
			})
		}
	}
}

func bareContainer(bridge *Bridge, path string) zkconn.Op {
	return zkconn.Op{Kind: zkconn.OpContainer, Path: path, Data: zkconn.NoData, ACL: bridge.cfg.ACL}
}

func bareNode(bridge *Bridge, path string) zkconn.Op {
	return zkconn.Op{Kind: zkconn.OpCreate, Path: path, Data: zkconn.NoData, ACL: bridge.cfg.ACL, Flags: zk.FlagEphemeralSequential}
}

// sendBare sends the operations of n in transactions for size of them, three at a time.
func sendBare(b *testing.B, bridge *Bridge, n, size int, ops func(i int) []zkconn.Op) {
	client := bridge.client()
	inFlight := make(chan struct{}, 3)
	var left sync.WaitGroup
	for first := 0; first < n; first += size {
		var containers, others []zkconn.Op
		for i := first; i < min(first+size, n); i++ {
			for _, op := range ops(i) {
				if op.Kind == zkconn.OpContainer {
					containers = append(containers, op)
				} else {
					others = append(others, op)
				}
			}
		}
		inFlight <- struct{}{}
		left.Add(1)
		client.Multi(append(containers, others...), func(_ []zk.MultiResponse, err error) {
			if err != nil {
				b.Error(err)
			}
			<-inFlight
			left.Done()
		})
	}
	left.Wait()
}

package costs

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// eachServer runs a benchmark on the embedded server and, where there is one, on a
// real ZooKeeper: with options on one of its own.
func eachServer(b *testing.B, f func(b *testing.B, s *zktest.Server), opts ...zktest.ServerOption) {
	for name, start := range map[string]func(testing.TB) *zktest.Server{
		"embedded": func(t testing.TB) *zktest.Server { return zktest.Embedded(t) },
		"zookeeper": func(t testing.TB) *zktest.Server {
			if len(opts) > 0 {
				return zktest.Own(t, opts...)
			}
			return zktest.Real(t)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, start(b))
		})
	}
}

// connected runs a benchmark on each server, with a connection.
func connected(b *testing.B, f func(b *testing.B, locks *actors.Locks, path func() string)) {
	eachServer(b, func(b *testing.B, s *zktest.Server) {
		locks, err := actors.Connect(b.Context(), s.Addr(), actors.Config{})
		if err != nil {
			b.Fatal(err)
		}
		defer locks.Close()
		f(b, locks, func() string { return s.Path(b) })
	})
}

func lockAndUnlock(b *testing.B, mu *actors.Mutex) {
	g, err := mu.Lock(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Unlock(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// 256 goroutines, each lock used for the first time.
func BenchmarkFirstUse256(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		if err := useEach(locks, path(), b.N, 1); err != nil {
			b.Fatal(err)
		}
	})
}

// One goroutine, each release waited for until ZooKeeper has acknowledged it.
func BenchmarkUncontended(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		mu := locks.Mutex(path())
		lockAndUnlock(b, mu)
		for b.Loop() {
			lockAndUnlock(b, mu)
		}
	})
}

// 64 goroutines on one lock: each requests it again as soon as it has released.
func BenchmarkHot64(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		contend(b, locks.Mutex(path()))
	})
}

func contend(b *testing.B, mu *actors.Mutex) {
	inside := 0
	b.SetParallelism(32) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g, err := mu.Lock(context.Background())
			if err != nil {
				b.Error(err)
				return
			}
			inside++
			g.Release()
		}
	})
	if inside != b.N {
		b.Errorf("%d critical sections counted %d", b.N, inside)
	}
}

// Hot64 with a local queue: the goroutines hand one node on.
func BenchmarkLocalHot64(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		contend(b, locks.Mutex(path(), actors.LocalQueue(actors.LocalQueueConfig{})))
	})
}

// Uncontended with a local queue: the node stays.
func BenchmarkLocalUncontended(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		mu := locks.Mutex(path(), actors.LocalQueue(actors.LocalQueueConfig{}))
		lockAndUnlock(b, mu)
		for b.Loop() {
			lockAndUnlock(b, mu)
		}
	})
}

// 256 goroutines on as many locks.
func BenchmarkMany256(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		b.SetParallelism(128)
		b.RunParallel(func(pb *testing.PB) {
			mu := locks.Mutex(path())
			for pb.Next() {
				lockAndUnlock(b, mu)
			}
		})
	})
}

// 30 goroutines on 3 permits: each requests one again as soon as it has released.
func BenchmarkSemaphore30(b *testing.B) {
	connected(b, func(b *testing.B, locks *actors.Locks, path func() string) {
		s := locks.Semaphore(path(), 3)
		var inside, done atomic.Int64
		b.ResetTimer()
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				for done.Add(1) <= int64(b.N) {
					g, err := s.Lock(context.Background())
					if err != nil {
						b.Error(err)
						return
					}
					if n := inside.Add(1); n > 3 {
						b.Errorf("%d hold 3 permits", n)
					}
					inside.Add(-1)
					g.Release()
				}
			})
		}
		wg.Wait()
	})
}

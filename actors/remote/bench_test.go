package remote_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// benchServer returns direct locks, locks of a lock server, and the address of that.
func benchServer(b *testing.B) (direct, through *actors.Locks, addr string) {
	return benchServerOf(b, zktest.Embedded(b))
}

func benchServerOf(b *testing.B, zk *zktest.Server) (direct, through *actors.Locks, addr string) {
	connect := func() *actors.Locks {
		l, err := actors.Connect(b.Context(), zk.Addr(), actors.Config{OmitHolder: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		return l
	}
	direct = connect()
	s, err := remote.NewServer(connect(), remote.ServerConfig{Insecure: true})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	g, err := s.GRPC(nil)
	if err != nil {
		b.Fatal(err)
	}
	go g.Serve(l)
	b.Cleanup(func() { s.Close(); g.Stop() })
	through, err = remote.Dial(b.Context(), l.Addr().String(), remote.DialConfig{Insecure: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { through.Close() })
	return direct, through, l.Addr().String()
}

func lockUnlock(b *testing.B, mu *actors.Mutex) {
	g, err := mu.Lock(context.Background())
	if err == nil {
		err = g.Unlock(context.Background())
	}
	if err != nil {
		b.Error(err)
	}
}

// An acquire and a release of a free lock, and a gRPC call.
func BenchmarkUncontended(b *testing.B) {
	direct, through, addr := benchServer(b)
	for name, l := range map[string]*actors.Locks{"direct": direct, "through": through} {
		b.Run(name, func(b *testing.B) {
			mu := l.Mutex("/bench/" + name)
			for b.Loop() {
				lockUnlock(b, mu)
			}
		})
	}
	b.Run("call", func(b *testing.B) {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		health := healthpb.NewHealthClient(conn)
		for b.Loop() {
			if _, err := health.Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// 256 locks, each asked for by one goroutine, of one client.
func BenchmarkManyLocks(b *testing.B) {
	direct, through, _ := benchServer(b)
	for name, l := range map[string]*actors.Locks{"direct": direct, "through": through} {
		b.Run(name, func(b *testing.B) {
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for i := range 256 {
				mu := l.Mutex(actors.PathOf("/bench/"+name, string(rune(0x4e00+i))))
				all.Go(func() {
					for left.Add(-1) >= 0 {
						lockUnlock(b, mu)
					}
				})
			}
			all.Wait()
		})
	}
}

// 64 clients with a stream each pass one lock around.
func BenchmarkHandOff(b *testing.B) {
	_, first, addr := benchServer(b)
	locks := []*actors.Locks{first}
	for len(locks) < 64 {
		l, err := remote.Dial(b.Context(), addr, remote.DialConfig{Insecure: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		locks = append(locks, l)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for _, l := range locks {
		mu := l.Mutex("/bench/hot")
		all.Go(func() {
			for left.Add(-1) >= 0 {
				lockUnlock(b, mu)
			}
		})
	}
	all.Wait()
}

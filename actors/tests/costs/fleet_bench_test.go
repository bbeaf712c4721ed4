//go:build unix

package costs

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ownServer starts a real server for a benchmark with ZooKeeper's default tick.
func ownServer(b *testing.B, opts ...zktest.ServerOption) *zktest.Server {
	return zktest.Own(b, append([]zktest.ServerOption{zktest.TickTime(2 * time.Second), zktest.Heap(1024)}, opts...)...)
}

// BenchmarkManySessions has many processes' worth of sessions, each of which holds a lock of its
// own, and restarts the server. It reports the memory of a session in its process, how long they
// take to come, and how long after the server's return all of them are connected again, in seconds,
// and how many grants were lost.
func BenchmarkManySessions(b *testing.B) {
	b.Run("zookeeper", func(b *testing.B) {
		s := ownServer(b, zktest.Setting("maxClientCnxns", "0"))
		for b.Loop() {
			measureSessions(b, s)
		}
	})
}

func measureSessions(b *testing.B, s *zktest.Server) {
	all, grants, path := make([]*actors.Locks, *clients), make([]*actors.Grant, *clients), s.Path(b)
	before, begun := heap(), time.Now()
	together := func(do func(i int) error) {
		var g errgroup.Group
		for i := range all {
			g.Go(func() error { return do(i) })
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	together(func(i int) (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if all[i], err = actors.Connect(ctx, s.Addr(), actors.Config{SessionTimeout: 40 * time.Second}); err == nil {
			grants[i], err = all[i].Mutex(fmt.Sprintf("%s/%d", path, i)).Lock(ctx)
		}
		return err
	})
	b.ReportMetric(time.Since(begun).Seconds(), "s-come")
	b.ReportMetric((heap()-before)/float64(*clients), "B/session")
	stopped := time.Now()
	s.Stop(b)
	s.Start(b)
	returned := time.Now()
	b.ReportMetric(returned.Sub(stopped).Seconds(), "s-outage")
	together(func(i int) error {
		_, err := all[i].Inspect(context.Background(), fmt.Sprintf("%s/%d", path, i))
		for begun := time.Now(); err != nil && time.Since(begun) < 3*time.Minute; <-time.After(100 * time.Millisecond) {
			_, err = all[i].Inspect(context.Background(), fmt.Sprintf("%s/%d", path, i))
		}
		return err
	})
	b.ReportMetric(time.Since(returned).Seconds(), "s-return")
	lost := 0
	for _, g := range grants {
		if g.Err() != nil {
			lost++
		}
	}
	b.ReportMetric(float64(lost), "lost")
	together(func(i int) error { return all[i].Close() })
}

// countingConn counts what goes over a connection.
type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// BenchmarkLockPerKey acquires and releases a lock for each of the keys, which are new and ten
// times as many as -clients, 64 at a time, and waits until the server has deleted nine tenths of
// their directories. It reports the bytes on the connection for each key, the time of each, how many
// directories vanish in a minute, and the longest time of a read meanwhile. The server has its
// default settings; the environment variable JAVA_TOOL_OPTIONS can give it system properties.
func BenchmarkLockPerKey(b *testing.B) {
	b.Run("zookeeper", func(b *testing.B) {
		s := ownServer(b, zktest.ContainerInterval(time.Minute))
		for b.Loop() {
			measureKeys(b, s, 10**clients)
		}
	})
}

func measureKeys(b *testing.B, s *zktest.Server, n int) {
	var bytes atomic.Int64
	var dialer net.Dialer
	locks, err := actors.Connect(b.Context(), s.Addr(), actors.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		return countingConn{conn, &bytes}, err
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	dir, begun := s.Path(b), time.Now()
	var g errgroup.Group
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			grant, err := locks.Mutex(actors.PathOf(dir, fmt.Sprint("order/", i))).Lock(context.Background())
			if err != nil {
				return err
			}
			return grant.Unlock(context.Background())
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(begun).Microseconds())/float64(n), "us/key")
	b.ReportMetric(float64(bytes.Load())/float64(n), "B/key")
	conn := s.Client(b)
	var longest time.Duration
	left := func() int32 {
		asked := time.Now()
		_, stat, err := conn.Exists(dir)
		if err != nil {
			b.Fatal(err)
		}
		longest = max(longest, time.Since(asked))
		if stat == nil {
			return 0
		}
		return stat.NumChildren
	}
	first, began := left(), time.Now()
	for left() == first { // the server checks once a minute
		began = time.Now()
		<-time.After(100 * time.Millisecond)
	}
	for left() > first/10 {
		<-time.After(100 * time.Millisecond)
	}
	b.ReportMetric(float64(first-left())/time.Since(began).Minutes(), "vanish/min")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-read")
}

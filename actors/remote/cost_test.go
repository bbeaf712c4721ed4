package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// heap returns the bytes that are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Requests count by the nodes that they need, and their data by the nodes that have them. A client over
// its share is refused; others have their locks, and the server its memory.
func TestRequestsCountByCost(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		s := serve(t, zk.Addr(), remote.ServerConfig{})
		greedy, honest := dial(t, s.addr), dial(t, s.addr)
		before := heap()
		pool := greedy.Semaphore(zk.Path(t)+"/pool", 1_000_000)
		var all []*actors.Future[*actors.Grant]
		for range 60 {
			all = append(all, pool.Acquire(t.Context(), actors.Permits(6000)))
		}
		mu := honest.Mutex(zk.Path(t) + "/honest")
		var worst time.Duration
		for range 20 {
			begin := time.Now()
			if err := lockOf(t, mu).Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			worst = max(worst, time.Since(begin))
		}
		grants := 0
		for _, f := range all {
			g, err := f.Wait(t.Context())
			if err == nil {
				grants++
				err = g.Unlock(t.Context())
			} else if errors.Is(err, actors.ErrLimit) && strings.Contains(err.Error(), "12002 nodes") {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		}
		if grants != 1 {
			t.Errorf("%d requests of 6,000 permits are granted, of 10,000 nodes", grants)
		}
		grown := heap() - before
		if grown > 128<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		t.Logf("lock and unlock beside 60 requests of 6,000 permits took %v at most, and the heap grew by %d KB", worst, grown>>10)

		// What was released counts no more.
		lockOf(t, pool)
		data := actors.WithData(make([]byte, 100<<10))
		g, err := pool.Lock(t.Context(), data, actors.Permits(40))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Lock(t.Context(), data, actors.Permits(40)); !errors.Is(err, actors.ErrLimit) || !strings.Contains(err.Error(), "bytes of data") {
			t.Errorf("8 MB of data: %v", err)
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		multi := greedy.MultiLock(greedy.Mutex(zk.Path(t)+"/a"), greedy.Semaphore(zk.Path(t)+"/b", 1))
		if g, err := multi.Lock(t.Context()); err != nil {
			t.Error(err)
		} else if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// One peer cannot take all leases: others get theirs.
func TestClientsPerPeer(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{MaxClientsPerPeer: 2})
	first := dial(t, s.addr)
	dial(t, s.addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l, err := remote.Dial(ctx, s.addr, remote.DialConfig{Insecure: true})
	if err == nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the most that it takes of one peer") {
		t.Errorf("a third client: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	dial(t, s.addr)
}

// The requests of all clients of a peer have limits together. A client beyond them may have few requests,
// and clients of other peers have what they had. What has ended counts no more.
func TestRequestsOfOnePeer(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{MaxRequestsPerClient: 100, MaxDataPerClient: 10_000})
	refused := func(err error, text string) {
		t.Helper()
		if !errors.Is(err, actors.ErrLimit) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v", err)
		}
	}
	last := dial(t, s.addr)
	var greedy []*actors.Locks
	var grants []*actors.Grant
	for i := range 4 {
		l := dial(t, s.addr)
		greedy = append(greedy, l)
		grants = append(grants, lockOf(t, l.Semaphore(fmt.Sprintf("/pool%d", i), 99), actors.Permits(99), actors.WithData([]byte{1})))
	}
	lockOf(t, last.Mutex("/first"))
	_, err := last.Mutex("/second").Lock(t.Context())
	refused(err, "all clients of this peer need 402 nodes")

	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other, err := remote.Dial(t.Context(), s.addr, remote.DialConfig{Insecure: true, Config: actors.Config{Dial: from.DialContext}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i := range 2 {
		lockOf(t, other.Mutex(fmt.Sprintf("/other%d", i)))
	}

	if err := grants[0].Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := greedy[1].Close(); err != nil {
		t.Fatal(err)
	}
	lockOf(t, last.Semaphore("/pool1", 99), actors.Permits(97), actors.WithData([]byte{1}))

	// Their data, too.
	for i, l := range []*actors.Locks{greedy[0], dial(t, s.addr), dial(t, s.addr), dial(t, s.addr)} {
		lockOf(t, l.Mutex(fmt.Sprintf("/data%d", i)), actors.WithData(make([]byte, 9_800)))
	}
	_, err = dial(t, s.addr).Mutex("/more").Lock(t.Context(), actors.WithData(make([]byte, 2_000)))
	refused(err, "bytes of data with this one: the lock server takes 40000 of one peer")
}

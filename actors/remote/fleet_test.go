package remote_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// All connections of a fleet behind one address break at one moment, beside as many of its address
// that come and say nothing. None of its clients loses its lock, and all are served again within two seconds,
// or four on a machine with one processor.
func TestFleetBehindOneAddressComesBack(t *testing.T) {
	clients := sample.Size(30, 1000)
	silent := sample.Size(100, 1000)
	zktest.Bubble(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		s := serveInmem(t, log)
		defer s.close(t)
		var mu sync.Mutex
		var conns []net.Conn
		dial := func(ctx context.Context) (net.Conn, error) {
			c, err := s.at.dial(ctx, honestAddress)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				conns = append(conns, c)
			}
			return c, err
		}
		fleet, held := make([]*actors.Locks, clients), make([]*actors.Grant, clients)
		var all sync.WaitGroup
		for i := range fleet {
			all.Go(func() {
				l, err := dialLocks(t.Context(), log, dial)
				if err != nil {
					t.Error(err)
					return
				}
				fleet[i] = l
				if held[i], err = l.Mutex(fmt.Sprintf("/fleet/%d", i)).Lock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		began := time.Now()
		for _, c := range conns {
			c.Close()
		}
		conns = nil
		for range silent {
			c, err := s.at.dial(t.Context(), honestAddress)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		for i, l := range fleet {
			all.Go(func() {
				mustBeFree(t, l, fmt.Sprintf("/fleet/other/%d", i))
			})
		}
		all.Wait()
		if d := time.Since(began); d > 4*time.Second/time.Duration(min(2, runtime.GOMAXPROCS(0))) {
			t.Errorf("the last client is served after %v", d)
		}
		for i, l := range fleet {
			if err := held[i].Err(); err != nil || l.Stats().SessionsLost > 0 {
				t.Errorf("client %d has lost its lock: %v", i, err)
			}
			l.Close()
		}
	})
}

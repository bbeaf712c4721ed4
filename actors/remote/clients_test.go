package remote_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Clients returns what each client holds and waits for, to those that Allow lets inspect all.
func TestClients(t *testing.T) {
	zk := zktest.Embedded(t)
	p := &policy{refused: "none"}
	s := serve(t, zk.Addr(), remote.ServerConfig{Allow: p.allow})
	first, second := dial(t, s.addr), dial(t, s.addr)
	held := lockOf(t, first.Mutex("/a"))
	lockOf(t, first.Mutex("/b"))
	waits := second.Mutex("/a").Acquire(t.Context())
	zktest.Eventually(t, time.Minute, func() bool { return len(zk.Nodes(t, "/a")) == 2 }, "one waits")
	all, err := remote.Clients(t.Context(), second)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	one, two := all[0], all[1]
	if one.Held != 2 || one.Waiting != 0 || two.Held != 0 || two.Waiting != 1 || one.Number >= two.Number {
		t.Errorf("%+v", all)
	}
	for _, c := range all {
		if !c.Connected || c.LeaseLeft <= 0 || !strings.Contains(c.Program, ".test") || !strings.HasPrefix(c.Address, "127.0.0.1:") {
			t.Errorf("%+v", c)
		}
	}
	held.Release()
	if _, err := waits.Result(); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.refused = "/"
	p.mu.Unlock()
	if _, err := remote.Clients(t.Context(), second); !errors.Is(err, actors.ErrNoAuth) || !strings.Contains(err.Error(), errPolicy.Error()) {
		t.Errorf("it may not: %v", err)
	}
	if _, err := remote.Clients(t.Context(), s.locks); !errors.Is(err, actors.ErrInvalid) {
		t.Errorf("Locks with a session: %v", err)
	}
}

// The clients come by several answers if they are many.
func TestManyClients(t *testing.T) {
	zk := zktest.Embedded(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{})
	const clients = 5
	defer remote.ClientsByAnswer(2)()
	var asks *actors.Locks
	for range clients {
		asks = dial(t, s.addr)
	}
	all, err := remote.Clients(t.Context(), asks)
	if err != nil || len(all) != clients {
		t.Fatalf("%v, %v", all, err)
	}
	numbers := map[string]bool{}
	for _, c := range all {
		numbers[fmt.Sprint(c.Number)] = true
	}
	if len(numbers) != clients {
		t.Errorf("%v", all)
	}
}

// Each limit that refuses something is counted under its name.
func TestLimitRefusals(t *testing.T) {
	zk := zktest.Embedded(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{MaxRequestsPerClient: 1, MaxDataPerClient: 200, MaxQuestionsPerClient: 1})
	locks := dial(t, s.addr)
	if _, err := locks.Mutex("/a").Lock(t.Context(), actors.WithData(make([]byte, 201))); !errors.Is(err, actors.ErrLimit) {
		t.Error(err)
	}
	lockOf(t, locks.Mutex("/a"), actors.WithData(nil))
	if _, err := locks.Mutex("/b").Lock(t.Context(), actors.WithData(nil)); !errors.Is(err, actors.ErrLimit) {
		t.Error(err)
	}
	got := s.server.Stats().LimitRefusals
	for limit, want := range map[remote.Limit]uint64{remote.LimitData: 1, remote.LimitRequests: 1, remote.LimitClients: 0, remote.LimitPending: 0} {
		if n, is := got[limit]; !is || n != want {
			t.Errorf("%s: %d, %v; want %d", limit, n, is, want)
		}
	}
}

// Renewals that come when less than half of the lease is left count as late, and messages that the client has
// not confirmed as pending until it has.
func TestLateAndPending(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		l, other := w.dial("client", w.names), w.dial("other", w.names)
		server := w.servers[0].server
		held := lockOf(t, l.Mutex("/a"))
		<-time.After(3 * leaseTime) // renewals in time
		if s := server.Stats(); s.LateRenewals != 0 || s.PendingMessages != 0 || s.PendingBytes != 0 {
			t.Errorf("all is well: %+v", s)
		}
		w.cut("client", "server", 5*leaseTime/8)
		<-time.After(leaseTime)
		if s := server.Stats(); s.LateRenewals == 0 || held.Err() != nil {
			t.Errorf("behind a slow network: %+v, %v", s, held.Err())
		}
		waits := other.Mutex("/a").Acquire(t.Context())
		w.cut("server", "other", leaseTime/2)
		if err := held.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(leaseTime / 8)
		if s := server.Stats(); s.PendingMessages == 0 || s.PendingBytes == 0 {
			t.Errorf("the grant is under way: %+v", s)
		}
		if _, err := waits.Result(); err != nil {
			t.Fatal(err)
		}
		<-time.After(leaseTime)
		if s := server.Stats(); s.PendingMessages != 0 || s.PendingBytes != 0 {
			t.Errorf("the client has confirmed: %+v", s)
		}
		w.closeAll(l, other)
	})
}

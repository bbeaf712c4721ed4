package remote_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// served is a lock server on loopback.
type served struct {
	locks  *actors.Locks
	server *remote.LockServer
	addr   string
}

func serve(t *testing.T, zk string, cfg remote.ServerConfig) *served {
	t.Helper()
	locks, err := actors.Connect(t.Context(), zk, actors.Config{OmitHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	cfg.Insecure = true
	s, err := remote.NewServer(locks, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.GRPC(nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); g.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		<-done
	})
	return &served{locks, s, l.Addr().String()}
}

func dial(t *testing.T, servers string) *actors.Locks {
	t.Helper()
	l, err := remote.Dial(t.Context(), servers, remote.DialConfig{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLock(t *testing.T) {
	slog.SetLogLoggerLevel(slog.LevelDebug)
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		s := serve(t, zk.Addr(), remote.ServerConfig{})
		a, b := dial(t, s.addr), dial(t, s.addr)
		path := zk.Path(t)
		g, err := a.Mutex(path).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if g.Token().Czxid == 0 || g.Err() != nil {
			t.Error(g)
		}
		if _, err := b.Mutex(path).Lock(t.Context(), actors.Try()); !errors.Is(err, actors.ErrNotAcquired) {
			t.Error(err)
		}
		waits := b.Mutex(path).Acquire(t.Context())
		if err := g.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		next, err := waits.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if g.Token().Compare(next.Token()) >= 0 {
			t.Errorf("%v, then %v", g.Token(), next.Token())
		}
	})
}

// Contenders that one transaction makes have one czxid: the step tells their tokens apart.
func TestTokensOfOneTransaction(t *testing.T) {
	zk := zktest.Embedded(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{})
	a, b := dial(t, s.addr), dial(t, s.addr)
	for i := range 50 {
		path := fmt.Sprintf("%s/%d", zk.Path(t), i)
		first, second := a.Mutex(path).Acquire(t.Context()), b.Mutex(path).Acquire(t.Context())
		select {
		case <-first.Done():
		case <-second.Done():
			first, second = second, first
		}
		var tokens [2]actors.Token
		for i, request := range []*actors.Future[*actors.Grant]{first, second} {
			g, err := request.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tokens[i] = g.Token()
			if err := g.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if tokens[0].Compare(tokens[1]) >= 0 {
			t.Fatalf("%v, then %v", tokens[0], tokens[1])
		}
	}
}

// A grant of several permits has a node for each, as it has with ZooKeeper in the process.
func TestSeveralPermits(t *testing.T) {
	zk := zktest.Embedded(t)
	locks := dial(t, serve(t, zk.Addr(), remote.ServerConfig{}).addr)
	s := locks.Semaphore(zk.Path(t), 3)
	for _, n := range []int{1, 2, 3} {
		g, err := s.Lock(t.Context(), actors.Permits(n))
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Nodes()) != n {
			t.Errorf("%d permits by %v", n, g.Nodes())
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What is larger than a lock server takes is refused at the client. Its grants go on.
func TestLargeRequests(t *testing.T) {
	zk := zktest.Embedded(t)
	locks := dial(t, serve(t, zk.Addr(), remote.ServerConfig{}).addr)
	g := lockOf(t, locks.Mutex(zk.Path(t)+"/held"))
	large := make([]byte, 3<<20)
	var members []actors.Member
	for i := range 8 {
		members = append(members, locks.Mutex(fmt.Sprintf("%s/%d%s", zk.Path(t), i, strings.Repeat("x", 500<<10))))
	}
	for what, ask := range map[string]func() error{
		"data":    func() error { _, err := locks.Mutex(zk.Path(t)).Lock(t.Context(), actors.WithData(large)); return err },
		"lock":    func() error { _, err := locks.MultiLock(members...).Lock(t.Context()); return err },
		"inspect": func() error { _, err := locks.Inspect(t.Context(), "/"+strings.Repeat("x", 3<<20)); return err },
	} {
		if err := ask(); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "bytes") {
			t.Errorf("%s: %.200v", what, err)
		}
	}
	if err := g.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// A grant of more permits than a frame has room for is refused at the client. Its other grants go on.
func TestManyPermits(t *testing.T) {
	zk := zktest.Embedded(t)
	locks := dial(t, serve(t, zk.Addr(), remote.ServerConfig{}).addr)
	held := lockOf(t, locks.Mutex(zk.Path(t)+"/held"))
	path := zk.Path(t) + "/" + strings.Repeat("x", 500)
	s := locks.Semaphore(path, 1_000_000)
	most := 0
	_, err := s.Lock(t.Context(), actors.Permits(1_000_000))
	if _, after, is := strings.Cut(fmt.Sprint(err), "grants "); !is || !errors.Is(err, actors.ErrInvalid) {
		t.Fatalf("%.1000v", err)
	} else if _, err := fmt.Sscan(after, &most); err != nil {
		t.Fatal(err)
	}
	g, err := s.Lock(t.Context(), actors.Permits(most))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes()) != most {
		t.Errorf("%d permits by %d nodes", most, len(g.Nodes()))
	}
	if err := errors.Join(held.Err(), g.Unlock(t.Context()), held.Unlock(t.Context())); err != nil {
		t.Error(err)
	}
}

// A lock server serves without TLS only if its configuration says so, as Dial connects without.
func TestInsecureIsChosen(t *testing.T) {
	locks, err := actors.Connect(t.Context(), zktest.Embedded(t).Addr(), actors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	for _, c := range []struct {
		insecure bool
		secured  *tls.Config
		want     string
	}{
		{false, nil, "set ServerConfig.Insecure"},
		{true, &tls.Config{}, "choose one"},
		{false, &tls.Config{}, ""},
		{true, nil, ""},
	} {
		s, err := remote.NewServer(locks, remote.ServerConfig{Insecure: c.insecure})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		g, err := s.GRPC(c.secured)
		if is := c.want != ""; is != errors.Is(err, actors.ErrInvalid) || is == (g != nil) || is && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if g != nil {
			g.Stop()
		}
	}
}

// What cannot be the list of lock servers, or the configuration of one, is refused with its value.
func TestBadConfigurations(t *testing.T) {
	for _, list := range []string{"", "a,,b", ":7400", "http://a:7400", "a b", "a:", "a:0", "a:65536", "a:http", "::1:x"} {
		_, err := remote.Dial(t.Context(), list, remote.DialConfig{Insecure: true})
		if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), strconv.Quote(list)) {
			t.Errorf("%q: %v", list, err)
		}
	}
	locks := dial(t, serve(t, zktest.Embedded(t).Addr(), remote.ServerConfig{}).addr)
	for _, cfg := range []remote.ServerConfig{{Lease: -1}, {Lease: 1}, {MaxClients: -1}, {MaxClientsPerPeer: -1}, {MaxRequestsPerClient: -1}} {
		if _, err := remote.NewServer(locks, cfg); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

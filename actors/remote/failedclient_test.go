package remote_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// virtualServer serves in virtual time. close closes the server, once its clients are closed.
func virtualServer(t *testing.T, cfg remote.ServerConfig) (server *remote.LockServer, connect func() *actors.Locks, close func()) {
	t.Helper()
	zk := zktest.Virtual(t)
	own, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{SessionTimeout: sessionTimeout, Margin: sessionMargin, Dial: zk.Dial, OmitHolder: true, Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Lease = leaseTime
	server, err = remote.NewServer(own, cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := newFabric(rand.New(rand.NewPCG(1, 7)))
	f.set("server", server)
	connect = func() *actors.Locks {
		l, err := remote.DialBy(t.Context(), f.dialer("one name"), []string{"server"}, remote.DialConfig{Config: actors.Config{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return server, connect, func() {
		for _, close := range []func() error{server.Close, own.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The actor of a client fails. The client keeps what it holds until its lease is over. Then others get
// that, and what its requests counted for all clients of the peer counts no more.
func TestClientWhoseActorFails(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		server, connect, close := virtualServer(t, remote.ServerConfig{Logger: slog.New(slog.DiscardHandler), MaxRequestsPerClient: 100, MaxDataPerClient: 10_000})
		var all []*actors.Locks
		var grants []*actors.Grant
		for i := range 4 {
			l := connect()
			all = append(all, l)
			grants = append(grants, lockOf(t, l.Semaphore(fmt.Sprintf("/pool%d", i), 99), actors.Permits(99), actors.WithData(make([]byte, 99))))
		}
		last := connect()
		lockOf(t, last.Mutex("/first"))
		refused := func(l *actors.Locks) {
			t.Helper()
			if _, err := l.Mutex("/second").Lock(t.Context()); !errors.Is(err, actors.ErrLimit) {
				t.Errorf("beyond the limits of all clients of the peer: %v", err)
			}
		}
		refused(last)

		before := time.Now()
		server.FailClient(1)
		<-grants[0].Done()
		refused(last) // the lease is not over
		second := last.Mutex("/second")
		_, err := second.Lock(t.Context())
		for ; err != nil && time.Since(before) < 10*leaseTime; _, err = second.Lock(t.Context()) {
			<-time.After(leaseTime / 100)
		}
		if err != nil {
			t.Errorf("what the requests of the client counted still counts: %v", err)
		}
		if waited := time.Since(before); waited < leaseTime/4 {
			t.Errorf("they count no more %v after the actor of the client has failed, whose lease may have been valid", waited)
		}
		_, err = last.Semaphore("/pool0", 99).Lock(t.Context(), actors.Permits(90), actors.WithData(make([]byte, 100))) // as its data, and what it held
		if err != nil {
			t.Error(err)
		}

		for _, l := range append(all, last) {
			if err := l.Close(); err != nil && l != all[0] {
				t.Error(err)
			}
		}
		if n := server.Clients(); n != 0 {
			t.Errorf("%d clients are left", n)
		}
		close()
	})
}

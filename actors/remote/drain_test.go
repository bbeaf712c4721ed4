package remote_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A holder that releases when the server drains has released: it hears of no loss, though its client
// then leaves the server at once.
func TestUnlockWhileDraining(t *testing.T) {
	zk := zktest.Embedded(t)
	for range 20 {
		s := serve(t, zk.Addr(), remote.ServerConfig{})
		locks := dial(t, s.addr)
		path := zk.Path(t)
		var releases []func() error
		for i := range 3 {
			g, err := locks.Mutex(fmt.Sprintf("%s/%d", path, i)).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, func() error { <-g.Revoked(); return g.Unlock(t.Context()) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		drained := make(chan error, 1)
		go func() { drained <- s.server.Drain(ctx, time.Minute) }()
		for _, release := range releases {
			if err := release(); err != nil {
				t.Error(err)
			}
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// A server without clients has drained, also if there is no time left.
func TestDrainWithoutClients(t *testing.T) {
	s := serve(t, zktest.Embedded(t).Addr(), remote.ServerConfig{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		if err := s.server.Drain(over, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

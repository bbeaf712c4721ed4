package locktest

import (
	"context"
	"flag"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
)

// throughServer has Connect return Locks that live on a lock server of their own, in place of a
// ZooKeeper session.
var throughServer = flag.Bool("through-lock-server", false, "run the tests' locks through a lock server")

// lease is the time of a client's lease. After the loss of a session, Close of the server waits for as
// long.
const lease = 10 * time.Second

// NeedsZooKeeper skips a test with -through-lock-server: the why is what locks of a lock server do
// not have.
func NeedsZooKeeper(t testing.TB, why string) {
	t.Helper()
	if *throughServer {
		t.Skip("not through a lock server: " + why)
	}
}

// ThroughServer returns Locks that live on a lock server with the given Locks, which the end of the
// test closes, before its own Locks.
func ThroughServer(t testing.TB, locks *actors.Locks, cfg actors.Config) *actors.Locks {
	t.Helper()
	server, err := remote.NewServer(locks, remote.ServerConfig{Lease: lease, Logger: cfg.Logger, Insecure: true})
	Must(t, err)
	l := bufconn.Listen(1 << 16)
	g, err := server.GRPC(nil)
	Must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		g.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		g.Stop()
		<-served
	})
	client := remote.DialConfig{Config: cfg, Insecure: true}
	client.Config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	client.SessionTimeout, client.Margin, client.Auth, client.ACL, client.TLS = 0, 0, nil, nil, nil
	client.MaxReply, client.MaxOutstanding, client.RequireChroot = 0, 0, false
	through, err := remote.Dial(context.Background(), "lock-server:7400", client)
	Must(t, err)
	t.Cleanup(func() { through.Close() })
	return through
}

package remote

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/streams"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge"
)

// For tests of other packages: clients and lock servers over streams of the test.

func init() {
	streams.YieldBy = func(f func()) { yield = f }
	streams.Dial = func(ctx context.Context, system *host.System, clock *zkbridge.Clock, d streams.Dialer, servers []string, cfg actors.Config) (*actors.Locks, error) {
		return dialOn(ctx, system, clock, hookedDialer{d}, servers, DialConfig{Config: cfg, Insecure: true})
	}
	streams.NewServer = func(locks *actors.Locks, lease time.Duration, cfg actors.Config) (streams.LockServer, error) {
		s, err := NewServer(locks, ServerConfig{Lease: lease, Logger: cfg.Logger})
		return hookedServer{s}, err
	}
}

type hookedDialer struct{ streams.Dialer }

func (d hookedDialer) connect(ctx context.Context, server string) (clientTransport, error) {
	return d.Connect(ctx, server)
}

func (d hookedDialer) abandon(server string) { d.Abandon(server) }

func (d hookedDialer) close() error { return nil }

type hookedServer struct{ *LockServer }

// Connect implements streams.LockServer.
func (s hookedServer) Connect(t streams.ServerStream, client string) error {
	return s.connect(t, Peer{Name: client})
}

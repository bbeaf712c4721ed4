// Package streams gives tests of other packages clients and lock servers over streams of their own, without
// gRPC. Package remote sets the variables when it is initialized.
package streams

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Client is a stream at its client. One goroutine calls Send, and one Recv. They block.
type Client interface {
	Send(*messages.ClientFrame) error
	Recv() (*messages.ServerFrame, error)
	// CloseSend is called behind the last Send.
	CloseSend() error
}

// ServerStream is a stream at its server, until Connect returns.
type ServerStream interface {
	Send(*messages.ServerFrame) error
	Recv() (*messages.ClientFrame, error)
}

// Dialer opens streams.
type Dialer interface {
	// Connect opens a stream to a server, which ends with ctx.
	Connect(ctx context.Context, server string) (Client, error)
	// Abandon has the next stream to a server use another connection: the present one may be dead.
	Abandon(server string)
}

// LockServer is a *remote.LockServer.
type LockServer interface {
	// Connect serves a stream of a client with a name, until the stream ends.
	Connect(stream ServerStream, client string) error
	Drain(ctx context.Context, grace time.Duration) error
	Close() error
	Clients() int
}

var (
	// Dial is remote.Dial over streams of the dialer, on a system of actors and by a clock. The system ends
	// with the locks.
	Dial func(ctx context.Context, system *host.System, clock *zkbridge.Clock, d Dialer, servers []string, cfg actors.Config) (*actors.Locks, error)
	// YieldBy has the goroutines that send frames call f where they let others run. Call it while there is no
	// stream.
	YieldBy func(f func())
	// NewServer is remote.NewServer with leases of a time.
	NewServer func(locks *actors.Locks, lease time.Duration, cfg actors.Config) (LockServer, error)
)

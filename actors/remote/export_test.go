package remote

import (
	"context"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// Transports of tests.
type (
	ClientTransport = clientTransport
	ServerTransport = serverTransport
)

// Streams opens streams for DialBy.
type Streams func(ctx context.Context, server string) (ClientTransport, error)

func (f Streams) connect(ctx context.Context, server string) (clientTransport, error) {
	return f(ctx, server)
}

func (f Streams) close() error { return nil }

// DialBy is Dial over streams of the test.
func DialBy(ctx context.Context, f Streams, servers []string, cfg DialConfig) (*actors.Locks, error) {
	return dialBy(ctx, f, servers, cfg)
}

// Connect serves a stream of the test.
func (s *LockServer) Connect(t ServerTransport, name string) error {
	return s.connect(t, Peer{Name: name})
}

var _ = messages.Reason_CLOSED

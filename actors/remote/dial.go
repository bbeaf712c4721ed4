package remote

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// DialConfig adjusts the locks of Dial.
type DialConfig struct {
	// Config counts as for actors.Connect, but for what concerns ZooKeeper: with SessionTimeout,
	// Auth, ACL, MaxReply, MaxOutstanding or RequireChroot Dial returns ErrInvalid. The lock
	// server decides these. TLS is needed, with a certificate of the client if the server wants
	// one. Margin is how long before the end of a lease its grants count as lost, a fifth of the
	// time for which the server first grants it at most. 0 is none: a lease needs a margin only for
	// work that takes time to stop.
	actors.Config
	// Insecure has the stream go without TLS.
	Insecure bool
}

// connectLimit bounds Dial with a context that has no deadline.
const connectLimit = 15 * time.Second

// Dial opens a session with one of the lock servers, "host:port,host:port", and blocks until it has
// a lease or ctx ends; if ctx has no deadline, for 15 s at most. It asks them in a random order, so that
// clients with one list are shared out among them. The locks need no ZooKeeper in this
// process. They keep to one server while its lease lasts, and queue anew at the next one after
// that: a grant of the lease is lost then, with ErrSessionLost. The errors distinguish unacceptable
// arguments (ErrInvalid) and servers that cannot be reached.
func Dial(ctx context.Context, servers string, cfg DialConfig) (*actors.Locks, error) {
	list, err := parseServers(servers)
	if err != nil {
		return nil, err
	}
	if err := cfg.check(ctx); err != nil {
		return nil, err
	}
	shuffle(list)
	return dialBy(ctx, newGRPCDialer(cfg.TLS.Clone(), cfg.Config.Dial), list, cfg)
}

// shuffle has clients with one list begin with different servers.
func shuffle(servers []string) {
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
}

// dialBy is Dial over any transport.
func dialBy(ctx context.Context, d dialer, servers []string, cfg DialConfig) (*actors.Locks, error) {
	cfg.Logger = manager.Logger(cfg.Logger)
	return dialOn(ctx, host.NewSystem(cfg.System, cfg.Logger), zkbridge.NewClock(nil), d, servers, cfg)
}

// dialOn is dialBy on a system of actors, which ends with the locks, and by a clock.
func dialOn(ctx context.Context, system *host.System, clock *zkbridge.Clock, d dialer, servers []string, cfg DialConfig) (*actors.Locks, error) {
	s := openSession(system, clock, cfg.Logger, d, servers, filepath.Base(os.Args[0]), cfg.Margin)
	locks := actors.New(system, s, cfg.Config)
	if err := s.connected(ctx); err != nil {
		locks.Close()
		return nil, err
	}
	return locks, nil
}

func (cfg *DialConfig) check(ctx context.Context) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{actors.ErrInvalid}, args...)...)
	}
	switch {
	case ctx == nil:
		return invalid("context is nil")
	case cfg.SessionTimeout != 0 || cfg.RequireChroot || cfg.Auth != nil || cfg.ACL != nil || cfg.MaxReply != 0 || cfg.MaxOutstanding != 0:
		return invalid("SessionTimeout, RequireChroot, Auth, ACL, MaxReply and MaxOutstanding are for ZooKeeper: set them where the lock server runs")
	case cfg.Margin < 0:
		return invalid("Margin %v is negative: 0 is none", cfg.Margin)
	case cfg.TLS == nil && !cfg.Insecure:
		return invalid("TLS is nil: give the certificates, or set Insecure")
	case cfg.TLS != nil && cfg.Insecure:
		return invalid("TLS is set, and Insecure too: choose one")
	}
	return (&manager.Settings{IdleTimeout: cfg.IdleTimeout,
		Limits: manager.Limits{PerLock: cfg.MaxRequestsPerLock, Total: cfg.MaxRequests, NodeData: cfg.MaxNodeData}}).Check()
}

// connected blocks until the first lease is granted.
func (s *session) connected(ctx context.Context) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectLimit)
		defer cancel()
	}
	for now := range s.Sessions(ctx) {
		if now.State == messages.SessionState_CONNECTED {
			return nil
		}
	}
	return fmt.Errorf("no lock server grants a lease: %w", s.Explain(context.Cause(ctx)))
}

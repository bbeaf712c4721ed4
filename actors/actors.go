package actors

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Config adjusts Locks. Its zero value works.
type Config struct {
	// SessionTimeout is how long ZooKeeper keeps the locks of a process that it
	// hears nothing of. 0 means 20 s. The server must grant it as it is; by
	// default servers grant from 2 to 20 times their tickTime of 2 s.
	SessionTimeout time.Duration
	// ConnectTimeout bounds each attempt to connect to one server. 0 lets the
	// bridge choose, from SessionTimeout and the number of servers.
	ConnectTimeout time.Duration
	// Margin is how long before ZooKeeper can expire the session it is taken for
	// lost. 0 means a fifth of SessionTimeout; for an ensemble it should be
	// (syncLimit + 1/2) * tickTime, see package zkbridge.
	Margin time.Duration
	// IdleTimeout is after how much idleness a lock's actor ends; it starts
	// again by itself. 0 means 10 s. It concerns memory only.
	IdleTimeout time.Duration
	// StopOnSuspended ends the contexts of grants, with ErrSuspended, as soon as
	// the connection is lost, rather than when the session must be taken for
	// lost. The grants go on; a new Context of one that still holds is in order
	// after reconnection.
	StopOnSuspended bool
	// MaxRequestsPerLock and MaxRequests bound the requests that may wait or hold
	// at one time, for one lock and for all. A request over the limit ends at
	// once with ErrLimit. 0 means no limit.
	MaxRequestsPerLock, MaxRequests int
	// MaxNodeData bounds the bytes of WithData; more is ErrLimit. 0 leaves the
	// bound of what can be sent: 512 KiB together with the path, else ErrInvalid.
	MaxNodeData int
	// Dial opens connections to "host:port"; nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS secures the connections that Dial opens; nil means that they are not
	// secured.
	TLS *tls.Config
	// Auth is shown to each server before anything else.
	Auth []zkbridge.Auth
	// ACL is what the nodes and directories get that locks make. nil means that
	// anybody may do anything; see zkbridge.CreatorAll.
	ACL []zkbridge.ACL
	// MaxReply is how many bytes a reply of ZooKeeper may have. 0 means 4 MiB.
	MaxReply int
	// MaxOutstanding is how many requests to ZooKeeper may be unanswered. Those
	// beyond fail with ErrLimit. 0 means no limit.
	MaxOutstanding int
	// System is a protoactor system to run in, for programs that have one; it
	// is not shut down by Close. nil means a private one.
	System *actor.ActorSystem
	// Logger hears of the session and of misuse. nil means slog.Default for what
	// must not go unnoticed, such as a grant that was dropped, and nothing else.
	Logger *slog.Logger
}

const (
	defaultIdleTimeout = 10 * time.Second
	longestTick        = time.Second
	shortestTick       = 10 * time.Millisecond
)

// connectLimit bounds Connect with a context that has no deadline.
const connectLimit = 15 * time.Second

// Locks gives locks that live on one ZooKeeper session. Its methods may be called
// from any goroutine.
type Locks struct {
	manager *manager
	bridge  guardedBridge
	owned   func() error    // closes what Connect has opened
	life    context.Context // ends with Close
	end     context.CancelFunc
	closing sync.Once
	failed  error
}

// Connect opens a session with one of the servers, "host:port,host:port", and blocks
// until it is established or ctx ends; where ctx has no deadline, for 15 s. Once ctx has
// ended it may take a second more, so that nothing is left running. The errors
// tell unacceptable arguments (ErrInvalid) before anything is opened, servers that
// cannot be reached, and a server that would not grant the session timeout
// (zkbridge.ErrSessionTimeout).
func Connect(ctx context.Context, servers string, cfg Config) (*Locks, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("connect to %s: %w", servers, context.Cause(ctx))
	}
	system := host.NewSystem(cfg.System, cfg.Logger)
	bridge, err := zkbridge.Open(system, zkbridge.Config{
		Servers:        servers,
		SessionTimeout: cfg.SessionTimeout,
		ConnectTimeout: cfg.ConnectTimeout,
		Margin:         cfg.Margin,
		Dial:           cfg.Dial,
		TLS:            cfg.TLS,
		Auth:           cfg.Auth,
		ACL:            cfg.ACL,
		MaxReply:       cfg.MaxReply,
		MaxOutstanding: cfg.MaxOutstanding,
		Logger:         cfg.Logger,
	})
	if err != nil {
		system.Close()
		return nil, invalid(err.Error())
	}
	locks := New(system, bridge, cfg)
	locks.manager.draining.sessionGoesOn = false
	locks.owned = func() error {
		err := bridge.Close()
		system.Close()
		return err
	}
	if err := connected(ctx, bridge); err != nil {
		locks.Close()
		return nil, err
	}
	return locks, nil
}

func (cfg *Config) check() error {
	if cfg.IdleTimeout < 0 {
		return invalid(fmt.Sprintf("IdleTimeout %v: it must be positive, or 0 for the default", cfg.IdleTimeout))
	}
	for name, limit := range map[string]int{"MaxRequestsPerLock": cfg.MaxRequestsPerLock, "MaxRequests": cfg.MaxRequests, "MaxNodeData": cfg.MaxNodeData} {
		if limit < 0 {
			return invalid(fmt.Sprintf("%s %d: it must be positive, or 0 for no limit", name, limit))
		}
	}
	return nil
}

func connected(ctx context.Context, bridge *zkbridge.Bridge) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectLimit)
		defer cancel()
	}
	return bridge.Connected(ctx)
}

// instances tells apart the actors of several Locks in one protoactor system.
var instances atomic.Uint64

// New is for programs that have a bridge of their own: it gives locks on its session.
// It does not block; requests wait until the bridge is connected. Of cfg only
// IdleTimeout, StopOnSuspended, Logger and the limits count. Close leaves bridge and system open;
// close them behind it.
func New(system *host.System, bridge *zkbridge.Bridge, cfg Config) *Locks {
	m := &manager{
		system:          system,
		zk:              guardedBridge{bridge},
		bridge:          bridge.Ref(),
		log:             cfg.Logger,
		idleTimeout:     cfg.IdleTimeout,
		name:            fmt.Sprintf("actorlock%d", instances.Add(1)),
		entries:         map[string]*actorEntry{},
		stopOnSuspended: cfg.StopOnSuspended,
		limits:          limits{cfg.MaxRequestsPerLock, cfg.MaxRequests, cfg.MaxNodeData},
		draining:        drainingActors{sessionGoesOn: true},
	}
	if m.log == nil {
		m.log = slog.New(misuseLog{slog.Default().Handler()})
	}
	if m.idleTimeout <= 0 {
		m.idleTimeout = defaultIdleTimeout
	}
	m.tickInterval = max(min(m.idleTimeout, longestTick), shortestTick)
	m.bridge.SendSubscribe(&messages.Subscribe{}, m)
	l := &Locks{manager: m, bridge: m.zk, owned: func() error { return nil }}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// misuseLog lets through what says that the library is used wrongly.
type misuseLog struct{ slog.Handler }

// Enabled implements slog.Handler.
func (m misuseLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && m.Handler.Enabled(ctx, level)
}

// Session tells about the ZooKeeper session that the locks live on.
func (l *Locks) Session() zkbridge.Session { return l.bridge.Session() }

// Sessions gives what Session does at once, and then again whenever State changes:
//
//	for s := range locks.Sessions(ctx) { ready.Store(s.State == messages.SessionState_CONNECTED) }
//
// A reader that is slow finds the newest state, not those in between, and keeps nobody
// waiting. It can tell that there was a loss by Epoch, which has grown then. The channel
// is closed when ctx ends or Locks is closed; no goroutine is behind it. Holders need
// none of this: their grants tell. If ctx is nil the channel is closed, and the logger
// hears of it.
func (l *Locks) Sessions(ctx context.Context) <-chan zkbridge.Session {
	if ctx == nil {
		l.manager.log.Error("Sessions gives nothing", "error", errNilContext)
		none := make(chan zkbridge.Session)
		close(none)
		return none
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(l.life, cancel)
	context.AfterFunc(ctx, func() { unwatch() })
	return l.bridge.Sessions(ctx)
}

// Close ends all requests and grants with ErrClosed and, if Connect opened it, the
// ZooKeeper session: first the contexts of the grants end, and then the session, with no
// margin between. Another process may hold the locks right after, so the work that they
// protect must have ended before Close is called. It blocks until ZooKeeper has confirmed
// that, or could not be reached for about ConnectTimeout: the error says so, and the nodes
// stay until the session expires. It may be called more than once. An actor must not call
// it.
//
// The session of Locks that New made goes on. Close then blocks until ZooKeeper has deleted
// their nodes, for the session's timeout at most; the error names those that are left, or may
// be.
func (l *Locks) Close() error {
	l.closing.Do(func() {
		l.failed = cmp.Or(l.manager.close(), l.owned())
		l.end()
	})
	return l.failed
}

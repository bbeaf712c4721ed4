package actors

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Config adjusts Locks. Its zero value works.
type Config struct {
	// SessionTimeout is how long ZooKeeper keeps the locks of a process without a sign of life.
	// 0 means 20 s. The server must grant it unchanged; by default servers grant from 2 to 20
	// times their tickTime of 2 s.
	SessionTimeout time.Duration
	// ConnectTimeout bounds each attempt to connect to one server. With 0 the bridge derives it
	// from SessionTimeout and the number of servers.
	ConnectTimeout time.Duration
	// Margin is how long before ZooKeeper can expire the session it is taken for lost. 0 means a
	// fifth of SessionTimeout; for an ensemble it should be (syncLimit + 1/2) * tickTime, see
	// package zkbridge.
	Margin time.Duration
	// IdleTimeout is how long a lock's actor goes on without use; a later request starts it
	// again. 0 means 10 s. It concerns memory only.
	IdleTimeout time.Duration
	// StopOnSuspended ends the contexts of grants, with ErrSuspended, as soon as the connection is
	// lost, rather than when the session must be taken for lost. The grants go on: after the
	// reconnection, a grant that still holds can have a new Context.
	StopOnSuspended bool
	// MaxRequestsPerLock and MaxRequests bound the requests that wait or hold at one time, for one
	// lock and for all. A request over a limit fails at once with ErrLimit. 0 means no limit.
	MaxRequestsPerLock, MaxRequests int
	// MaxNodeData bounds the bytes of WithData; more is ErrLimit. With 0 only the size of a message
	// is bounded: 512 KiB together with the path, else ErrInvalid.
	MaxNodeData int
	// OmitHolder leaves the nodes of contenders without data where a request has no WithData.
	// Otherwise such a node has as JSON the host's name, the process id, the program's name and the
	// owner's name, if the owner has one; see Participant. Every client that may read the node can
	// read them.
	OmitHolder bool
	// RequireChroot has Connect fail if the chroot does not exist (zkbridge.ErrNoChroot), instead of
	// making it. Locks below a chroot of a wrong name do not exclude the others.
	RequireChroot bool
	// Dial opens connections to "host:port"; nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS secures the connections that Dial opens; nil leaves them unsecured.
	TLS *tls.Config
	// Auth holds the credentials that each server gets before any request.
	Auth []zkbridge.Auth
	// ACL is the access control list of the nodes and directories that locks create. nil grants
	// all rights to every client; see zkbridge.CreatorAll.
	ACL []zkbridge.ACL
	// MaxReply bounds the bytes of one reply of ZooKeeper. 0 means 4 MiB.
	MaxReply int
	// MaxOutstanding bounds the unanswered requests to ZooKeeper. A request over the limit fails
	// with ErrLimit, unless it only deletes nodes. 0 means no limit.
	MaxOutstanding int
	// System is the protoactor system to run in, for programs that have one; Close does not shut
	// it down. nil means a private one.
	System *actor.ActorSystem
	// Monitor hears of all requests, for metrics and traces; nil is none. Package actors/telemetry
	// has one for OpenTelemetry.
	Monitor Monitor
	// RecordStacks has each request remember where it was made, which the log then says of a grant
	// or a future that was dropped. It costs a request about a microsecond and half a kilobyte.
	RecordStacks bool
	// Logger gets messages about the session and about misuse. nil means slog.Default for warnings
	// and errors, such as a lost session, a dropped grant or a missing chroot, and drops all
	// others. A Logger that blocks does not stop the locks: host.BoundLogger says how long it
	// delays them, and which lines are dropped.
	Logger *slog.Logger
}

// settings returns what counts for the manager.
func (cfg *Config) settings() *manager.Settings {
	return &manager.Settings{
		IdleTimeout:     cfg.IdleTimeout,
		StopOnSuspended: cfg.StopOnSuspended,
		OmitHolder:      cfg.OmitHolder,
		Limits:          manager.Limits{PerLock: cfg.MaxRequestsPerLock, Total: cfg.MaxRequests, NodeData: cfg.MaxNodeData},
		RecordStacks:    cfg.RecordStacks,
		Monitor:         monitorOf(cfg.Monitor),
		Log:             manager.Logger(cfg.Logger),
	}
}

// Backend is what Locks live on: a *[zkbridge.Bridge], or the session with a lock server that package
// remote opens. New panics for any other type.
type Backend interface{ manager.Backend }

// connectLimit bounds Connect with a context that has no deadline.
const connectLimit = 15 * time.Second

// Connect opens a session with one of the servers, "host:port,host:port", and blocks until the
// session is established or ctx ends; if ctx has no deadline, for 15 s at most. After the end of
// ctx it may take a second more to stop what it has started. A chroot follows the servers, as in
// "host:port,host:port/app"; a missing one is made, unless Config.RequireChroot is set. Its errors
// distinguish unacceptable arguments (ErrInvalid), which it finds before it opens anything, servers
// that cannot be reached, and a server that does not grant the session timeout
// (zkbridge.ErrSessionTimeout).
func Connect(ctx context.Context, servers string, cfg Config) (*Locks, error) {
	if ctx == nil {
		return nil, check.ErrNilContext
	}
	if err := cfg.settings().Check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("connect to %s: %w", servers, context.Cause(ctx))
	}
	cfg.Logger = manager.Logger(cfg.Logger)
	system := host.NewSystem(cfg.System, cfg.Logger)
	bridge, err := zkbridge.Open(system, zkbridge.Config{
		Servers:        servers,
		RequireChroot:  cfg.RequireChroot,
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
		return nil, check.Invalid(err.Error())
	}
	locks := New(system, bridge, cfg)
	locks.manager.SessionEndsWithClose()
	locks.owned = bridge
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectLimit)
		defer cancel()
	}
	if err := bridge.Connected(ctx); err != nil {
		locks.Close()
		return nil, err
	}
	return locks, nil
}

// New returns Locks on a bridge that the program has opened itself. It does not block; requests wait
// until the bridge is connected. Of cfg only IdleTimeout, StopOnSuspended, OmitHolder, RecordStacks,
// Monitor, Logger and the limits count. Close leaves bridge and system open; close them after it.
// (remote.Dial calls New with a session of its own, and Close closes both.)
func New(system *host.System, on Backend, cfg Config) *Locks {
	m := manager.New(system, on, *cfg.settings())
	l := &Locks{managed: access.ManagedBy(m), manager: m}
	if m.Remote != nil {
		l.owned = m.Remote
	}
	l.stopMonitor = l.startMonitor(cfg.Monitor)
	return l
}

// Drain prepares for Close: it blocks until this process holds no lock and ZooKeeper has confirmed
// all releases, or ctx ends. Then Close ends no grant that is in use. The error of an ended ctx
// names the locks that are still held.
//
// From the call on, new requests end with ErrDraining, and so do those that wait: a waiter would
// begin its work only after other holders have ended theirs, here or in other processes, for which
// there is no limit. Holders go on, and may enter again, as named owners, the lock that they hold.
// Nothing ends the draining but Close. If that ends grants which are held, Drain returns ErrClosed.
// Drain may be called again, with another ctx. An actor must not call it.
func (l *Locks) Drain(ctx context.Context) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	quiet := l.manager.RefuseNew()
	select {
	case <-quiet.Done():
	case <-ctx.Done():
	}
	if quiet.Err() == nil {
		return fmt.Errorf("drain: %s: %w", l.heldText(), context.Cause(ctx))
	}
	if l.manager.Counters().Lost[messages.Reason_CLOSED] > 0 {
		return fmt.Errorf("drain: Close has ended grants that were held: %w", ErrClosed)
	}
	return nil
}

// heldText returns the requests that are not released, with owner, state and time, for people.
func (l *Locks) heldText() string {
	const most = 10
	held := slices.DeleteFunc(l.OpenRequests(), func(r OpenRequest) bool { return r.State == RequestLost })
	var texts []string
	for _, r := range held[:min(len(held), most)] {
		text := fmt.Sprintf("%s (%s", r.Path, r.State)
		if r.Owner != "" {
			text += fmt.Sprintf(" by %q", r.Owner)
		}
		texts = append(texts, text+" since "+r.Since.Format(time.TimeOnly)+")")
	}
	if more := len(held) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d requests are not released: %s", len(held), strings.Join(texts, ", "))
}

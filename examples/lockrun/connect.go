package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// connectLimit is how long lockrun tries to connect at its start. Tests raise it, for machines that
// have other work.
var connectLimit = 15 * time.Second

// open connects within the limit. It returns the exit code with an error.
func open(o *options, limit time.Duration, signals <-chan os.Signal) (*actors.Locks, int, error) {
	cfg, err := o.Flags.Config()
	if err != nil {
		return nil, exitUsage, err
	}
	cfg.Margin = o.margin()
	if o.Servers != "" {
		cfg.RequireChroot = !o.makesNodes()
	}
	leastLevel.Set(o.leastLevel())
	cfg.Logger = stderr
	notified, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	ctx, cancel := context.WithTimeout(notified, min(limit, connectLimit))
	defer cancel()
	locks, err := o.Connect(ctx, cfg)
	switch {
	case err == nil:
		go o.Certificates.Watch(context.Background()) // until lockrun ends
		return locks, 0, nil
	case errors.Is(err, actors.ErrInvalid):
		return nil, exitUsage, plain(err)
	case notified.Err() != nil:
		return nil, bySignal + number(<-signals), plain(err)
	}
	return nil, exitUnavailable, plain(err)
}

// makesNodes reports whether the command makes nodes, and so a chroot that is missing. To the others
// it is a wrong name.
func (o *options) makesNodes() bool { return len(o.command) > 0 || o.raise }

// leastLevel returns the lowest level of the library's log lines that concern the user. Lines at
// WARN are about held locks, which a subcommand does not have.
func (o *options) leastLevel() slog.Level {
	if len(o.command) > 0 {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// errNotDone is the error of a subcommand that has not done its work because of other processes or
// the user.
var errNotDone = errors.New("not done")

// withLocks connects and calls f, whose context ends when lockrun gets a signal. It returns the
// exit code for the error of f.
func withLocks(o *options, f func(ctx context.Context, locks *actors.Locks) error) (int, error) {
	return withLocksWithin(o, connectLimit, f)
}

// withLocksWithin is withLocks with another limit for the connection.
func withLocksWithin(o *options, limit time.Duration, f func(ctx context.Context, locks *actors.Locks) error) (int, error) {
	signals := catchSignals()
	locks, code, err := open(o, limit, signals)
	if err != nil {
		return code, err
	}
	defer closeWithin(closeLimit(locks), locks)
	ctx, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	err = f(ctx, locks)
	switch {
	case ctx.Err() != nil:
		return bySignal + number(<-signals), nil
	case err == nil:
		return 0, nil
	case errors.Is(err, actors.ErrNotHeld):
		return exitLost, plain(err)
	case errors.Is(err, errNotDone):
		return exitNotAcquired, err
	}
	return exitUnavailable, plain(err)
}

// requestContext returns a context for a request to ZooKeeper.
func (o *options) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, o.outageLimit())
}

func connected(locks *actors.Locks) bool {
	return locks.Session().State == messages.SessionState_CONNECTED
}

// closeLimit returns how long lockrun waits for the close of the session.
func closeLimit(locks *actors.Locks) time.Duration {
	if connected(locks) {
		return 5 * time.Second
	}
	return time.Second
}

// closeWithin closes the session, and waits at most limit for it.
func closeWithin(limit time.Duration, locks *actors.Locks) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		locks.Close()
	}()
	select {
	case <-closed:
	case <-time.After(limit):
	}
}

// margin returns the time before the possible expiry of the session at which a lock counts as
// lost. The command has the first half of it to end after SIGTERM. The margin of a lease is a fifth
// of the lease at most.
func (o *options) margin() time.Duration { return o.Session / 5 }

// outageLimit returns how long lockrun waits for an answer. While it waits for a lock, it says
// after that time that ZooKeeper or the lock server is away.
func (o *options) outageLimit() time.Duration { return max(o.Session, 5*time.Second) }

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// lock is the interface of all recipes.
type lock interface {
	Acquire(ctx context.Context, options ...actors.Option) *actors.Future[*actors.Grant]
}

// modes are the values of -mode.
var modes = map[string]func(*actors.Locks, *options) lock{
	"mutex":     func(l *actors.Locks, o *options) lock { return l.Mutex(o.path) },
	"read":      func(l *actors.Locks, o *options) lock { return l.RWMutex(o.path).Read() },
	"write":     func(l *actors.Locks, o *options) lock { return l.RWMutex(o.path).Write() },
	"semaphore": func(l *actors.Locks, o *options) lock { return l.Semaphore(o.path, o.permits) },
}

// run returns the exit code, and an error if the code is not the command's own.
func run(o *options) (int, error) {
	program, err := exec.LookPath(o.command[0])
	if err != nil {
		return notRun(err)
	}
	start := time.Now()
	signals := catch()
	locks, code, err := open(o, start, signals)
	if err != nil {
		return code, err
	}
	grant, code, err := acquire(o, start, locks, signals)
	if err != nil {
		closeWithin(min(closeLimit(locks), o.left(start, slack)), locks)
		return code, err
	}
	defer func() { closeWithin(closeLimit(locks), locks) }()
	return hold(o, program, locks, grant, signals)
}

// lockrun may fail later than -wait: by answerSlack while it connects and waits for answers, and
// by slack in all, which leaves the difference for the close of the session.
const (
	answerSlack = 800 * time.Millisecond
	slack       = time.Second
)

// left returns the time until -wait plus extra after start. Without -wait it returns
// outageLimit.
func (o *options) left(start time.Time, extra time.Duration) time.Duration {
	if o.forever {
		return o.outageLimit()
	}
	return time.Until(start.Add(o.wait + extra))
}

// margin returns the time before the possible expiry of the session at which the lock counts as
// lost. The command has the first half of it to end after SIGTERM.
func (o *options) margin() time.Duration { return o.session / 5 }

// outageLimit returns how long lockrun waits for ZooKeeper to come back.
func (o *options) outageLimit() time.Duration { return max(o.session, 5*time.Second) }

// open connects within -wait and outageLimit. It returns the exit code with an error.
func open(o *options, start time.Time, signals <-chan os.Signal) (*actors.Locks, int, error) {
	notified, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	ctx, cancel := context.WithTimeout(notified, min(o.left(start, answerSlack), o.outageLimit(), 15*time.Second))
	defer cancel()
	locks, err := actors.Connect(ctx, o.servers, actors.Config{SessionTimeout: o.session, Margin: o.margin()})
	switch {
	case err == nil:
		return locks, 0, nil
	case errors.Is(err, actors.ErrInvalid):
		return nil, exitUsage, err
	case notified.Err() != nil:
		return nil, exitSignal + number(<-signals), err
	}
	return nil, exitUnavailable, err
}

// acquire waits for the lock. If it fails, the end of the session takes the request out of the
// queue.
func acquire(o *options, start time.Time, locks *actors.Locks, signals <-chan os.Signal) (*actors.Grant, int, error) {
	ctx := context.Background()
	if !o.forever { // in case a server stays connected but does not answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.left(start, answerSlack))
		defer cancel()
	}
	pending := modes[o.mode](locks, o).Acquire(ctx, o.waiting(start)...)
	watching, done := context.WithCancel(context.Background())
	defer done()
	sessions := locks.Sessions(watching)
	var outage <-chan time.Time // receives when ZooKeeper has been away for outageLimit
	for {
		select {
		case <-pending.Done():
			grant, err := pending.Result()
			return grant, acquireCode(err), err
		case s := <-signals:
			return nil, exitSignal + number(s), fmt.Errorf("%v while waiting for the lock", s)
		case s := <-sessions:
			switch {
			case s.State == messages.SessionState_CONNECTED:
				outage = nil
			case outage == nil:
				outage = time.After(o.outageLimit())
			}
		case <-outage:
			return nil, exitUnavailable, fmt.Errorf("ZooKeeper is gone while waiting for the lock: %s", o.servers)
		}
	}
}

// waiting returns the options that limit the request to the rest of -wait: one try if nothing
// is left.
func (o *options) waiting(start time.Time) []actors.Option {
	left := o.left(start, 0)
	switch {
	case o.forever:
		return nil
	case left <= 0:
		return []actors.Option{actors.Try()}
	}
	return []actors.Option{actors.WithTimeout(left)}
}

func connected(locks *actors.Locks) bool {
	return locks.Session().State == messages.SessionState_CONNECTED
}

func acquireCode(err error) int {
	switch {
	case errors.Is(err, actors.ErrInvalid):
		return exitUsage
	case errors.Is(err, actors.ErrNotAcquired), errors.Is(err, actors.ErrTimedOut):
		return exitNotAcquired
	}
	return exitUnavailable // also for a try without an answer
}

// hold runs the command, and stops it if the grant is lost.
func hold(o *options, program string, locks *actors.Locks, grant *actors.Grant, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(program, o.command[1:]...)
	cmd.Args[0] = o.command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"ACTORLOCK_TOKEN="+grant.Token().String(), "ACTORLOCK_PATH="+grant.Path(), "ACTORLOCK_NODE="+grant.Node())
	g, err := start(cmd)
	if err != nil {
		release(o, grant)
		return notRun(err)
	}
	defer g.stopGuard()
	defer g.giveTerminalBack()
	continued := catchContinue()
	for {
		select {
		case s := <-signals:
			g.signal(s)
		case s := <-g.stops:
			g.onStop(s)
		case <-continued:
			g.onContinue()
		case <-grant.Done():
			g.stop(o.grace(grant, locks))
			return exitLost, fmt.Errorf("the command was stopped because its lock was lost: %w", grant.Err())
		case <-g.ended:
			if lost := grant.Err(); lost != nil {
				g.stop(o.grace(grant, locks)) // processes that the command has left behind
				return exitLost, fmt.Errorf("the lock was lost when the command ended: %w", lost)
			}
			release(o, grant)
			return g.code, nil
		}
	}
}

// grace returns the time between SIGTERM and SIGKILL after a loss: half of the margin, or less
// if lockrun was paused.
func (o *options) grace(grant *actors.Grant, locks *actors.Locks) time.Duration {
	half := o.margin() / 2
	s := locks.Session()
	switch {
	case !errors.Is(grant.Err(), actors.ErrSessionLost):
		return half
	case s.ID != grant.Session():
		return 0 // the next session is open already
	}
	return min(half, time.Until(s.Deadline.Add(half)))
}

// release waits until ZooKeeper has deleted the node, so that the lock is free when lockrun has
// ended.
func release(o *options, grant *actors.Grant) {
	ctx, cancel := context.WithTimeout(context.Background(), min(o.session, 5*time.Second))
	defer cancel()
	if err := grant.Unlock(ctx); err != nil {
		warn("the lock stays taken until its session expires, within %v: %v", o.session, err)
	}
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

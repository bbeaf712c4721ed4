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

// lock is what all recipes can do.
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

// run gives the exit code, and an error to print if that is not the command's own.
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

// How much longer than -wait lockrun may take to fail: to connect and for answers, and in
// all. The rest is for closing the session.
const (
	answerSlack = 800 * time.Millisecond
	slack       = time.Second
)

// left returns how long lockrun, which began at start, may still take if -wait may be
// exceeded by extra. Without -wait that is as long as ZooKeeper may be away.
func (o *options) left(start time.Time, extra time.Duration) time.Duration {
	if o.forever {
		return o.patience()
	}
	return time.Until(start.Add(o.wait + extra))
}

// margin is how long before the session can expire its lock is taken for lost. The
// first half is for the command to end by itself.
func (o *options) margin() time.Duration { return o.session / 5 }

// patience is how long ZooKeeper may be away before lockrun gives up.
func (o *options) patience() time.Duration { return max(o.session, 5*time.Second) }

// open connects, for as long as -wait allows, but not longer than lockrun waits for ZooKeeper.
// With an error it returns the exit code.
func open(o *options, start time.Time, signals <-chan os.Signal) (*actors.Locks, int, error) {
	notified, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	ctx, cancel := context.WithTimeout(notified, min(o.left(start, answerSlack), o.patience(), 15*time.Second))
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

// acquire waits for the lock. Whoever ends the wait early need not leave the queue:
// the end of the session does.
func acquire(o *options, start time.Time, locks *actors.Locks, signals <-chan os.Signal) (*actors.Grant, int, error) {
	ctx := context.Background()
	if !o.forever { // for a server that stays connected but does not answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.left(start, answerSlack))
		defer cancel()
	}
	pending := modes[o.mode](locks, o).Acquire(ctx, o.waiting(start)...)
	watching, done := context.WithCancel(context.Background())
	defer done()
	sessions := locks.Sessions(watching)
	var away <-chan time.Time // when ZooKeeper has been away for too long
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
				away = nil
			case away == nil:
				away = time.After(o.patience())
			}
		case <-away:
			return nil, exitUnavailable, fmt.Errorf("ZooKeeper is gone while waiting for the lock: %s", o.servers)
		}
	}
}

// waiting returns the options for what is left of -wait. If connecting has taken all of it,
// there is one try.
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
	return exitUnavailable // also if a try has no answer
}

// hold runs the command while the grant holds.
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
	defer g.dismiss()
	for {
		select {
		case s := <-signals:
			g.signal(s)
		case <-grant.Done():
			g.stop(o.grace(grant, locks))
			return exitLost, fmt.Errorf("the command was stopped because its lock was lost: %w", grant.Err())
		case <-g.ended:
			if lost := grant.Err(); lost != nil {
				g.stop(o.grace(grant, locks)) // what the command has left running
				return exitLost, fmt.Errorf("the lock was lost when the command ended: %w", lost)
			}
			release(o, grant)
			return exitCode(cmd.ProcessState), nil
		}
	}
}

// grace is how long the command may take to end by itself when its lock was lost: half of
// the margin. A lockrun that was paused has less left to give, or nothing.
func (o *options) grace(grant *actors.Grant, locks *actors.Locks) time.Duration {
	half := o.margin() / 2
	s := locks.Session()
	switch {
	case !errors.Is(grant.Err(), actors.ErrSessionLost):
		return half
	case s.ID != grant.Session():
		return 0 // there is the next one already
	}
	return min(half, time.Until(s.Deadline.Add(half)))
}

// release waits until ZooKeeper has removed the node, so that who comes after this
// process finds the lock free.
func release(o *options, grant *actors.Grant) {
	ctx, cancel := context.WithTimeout(context.Background(), min(o.session, 5*time.Second))
	defer cancel()
	if err := grant.Unlock(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "lockrun: the lock stays taken until its session expires, within %v: %v\n", o.session, err)
	}
}

// closeLimit returns how long closing the session may take: not long if ZooKeeper is away.
func closeLimit(locks *actors.Locks) time.Duration {
	if connected(locks) {
		return 5 * time.Second
	}
	return time.Second
}

// closeWithin closes the session, and waits for it no longer than limit.
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

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
	signals := catch()
	locks, code, err := open(o, signals)
	if err != nil {
		return code, err
	}
	defer closeSoon(locks)
	grant, code, err := acquire(o, locks, signals)
	if err != nil {
		return code, err
	}
	return hold(o, program, locks, grant, signals)
}

// margin is how long before the session can expire its lock is taken for lost. The
// first half is for the command to end by itself.
func (o *options) margin() time.Duration { return o.session / 5 }

// patience is how long ZooKeeper may be away before lockrun gives up.
func (o *options) patience() time.Duration { return max(o.session, 5*time.Second) }

// open connects. With an error it returns the exit code.
func open(o *options, signals <-chan os.Signal) (*actors.Locks, int, error) {
	notified, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	ctx, cancel := context.WithTimeout(notified, min(o.patience(), 15*time.Second))
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
func acquire(o *options, locks *actors.Locks, signals <-chan os.Signal) (*actors.Grant, int, error) {
	ctx := context.Background()
	if !o.forever { // for a server that stays connected but does not answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.wait+o.patience())
		defer cancel()
	}
	pending := modes[o.mode](locks, o).Acquire(ctx, o.waiting()...)
	watching, done := context.WithCancel(context.Background())
	defer done()
	sessions := locks.Sessions(watching)
	var away <-chan time.Time // when ZooKeeper has been away for too long
	for {
		select {
		case <-pending.Done():
			grant, err := pending.Result()
			return grant, acquireCode(err, locks), err
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

func (o *options) waiting() []actors.Option {
	switch {
	case o.forever:
		return nil
	case o.wait == 0:
		return []actors.Option{actors.Try()}
	}
	return []actors.Option{actors.WithTimeout(o.wait)}
}

func connected(locks *actors.Locks) bool {
	return locks.Session().State == messages.SessionState_CONNECTED
}

func acquireCode(err error, locks *actors.Locks) int {
	switch {
	case errors.Is(err, actors.ErrInvalid):
		return exitUsage
	case !errors.Is(err, actors.ErrNotAcquired) && !errors.Is(err, actors.ErrTimedOut), !connected(locks):
		return exitUnavailable
	}
	return exitNotAcquired
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

// closeSoon closes the session. It does not wait long for a server that is away.
func closeSoon(locks *actors.Locks) {
	limit := time.Second
	if connected(locks) {
		limit = 5 * time.Second
	}
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

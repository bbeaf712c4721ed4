package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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
		return notStarted(err)
	}
	start := time.Now()
	signals := catchSignals()
	locks, code, err := open(o, start, signals)
	if err != nil {
		return code, err
	}
	grant, code, err := acquire(o, start, locks, signals)
	if err != nil {
		closeWithin(min(closeLimit(locks), o.left(start, slack)), locks)
		return code, plain(err)
	}
	o.printVerbose("holds %s after %v, token %v", o.path, since(start), grant.Token())
	defer func() { closeWithin(closeLimit(locks), locks) }()
	code, err = hold(o, program, locks, grant, signals)
	return code, plain(err)
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

// acquire waits for the lock. If it fails, the end of the session takes the request out of the
// queue.
func acquire(o *options, start time.Time, locks *actors.Locks, signals <-chan os.Signal) (*actors.Grant, int, error) {
	ctx := context.Background()
	if !o.forever { // in case a server stays connected but does not answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.left(start, answerSlack))
		defer cancel()
	}
	pending := modes[o.mode](locks, o).Acquire(ctx, o.request(start)...)
	watching, stop := context.WithCancel(context.Background())
	var printing sync.WaitGroup
	defer printing.Wait() // no position is printed after the grant
	defer stop()
	if o.verbose {
		printing.Go(func() { o.printPositions(watching, locks) })
	}
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
			return nil, exitUnavailable, fmt.Errorf("ZooKeeper is gone while waiting for the lock: %s", o.Servers)
		}
	}
}

// request returns the options of the request. They limit it to the rest of -wait: one try if
// nothing is left. Its owner is named after the command, so that other clients see it.
func (o *options) request(start time.Time) []actors.Option {
	all := []actors.Option{actors.WithOwner(actors.Owner(filepath.Base(o.command[0])))}
	if o.data != "" {
		all = append(all, actors.WithData([]byte(o.data)))
	}
	if o.onRevoke != "" {
		all = append(all, actors.Revocable())
	}
	left := o.left(start, 0)
	switch {
	case o.forever:
		return all
	case left <= 0:
		return append(all, actors.Try())
	}
	return append(all, actors.WithTimeout(left))
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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
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
	console.Survive() // a broken standard error must not end the command
	start := time.Now()
	signals := catchSignals()
	if mayChangeUser(program) {
		warn("%s is set-uid: as another user it may get no signals of lockrun, which could not stop it if the lock were lost; %s", program, sudoFirst)
	}
	locks, code, err := open(o, o.left(start, answerSlack), signals)
	if err != nil {
		return code, err
	}
	if o.shares {
		code, err := runPartitions(o, program, locks, signals)
		closeWithin(closeLimit(locks), locks)
		return code, plain(err)
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
// connectLimit.
func (o *options) left(start time.Time, extra time.Duration) time.Duration {
	if o.forever {
		return connectLimit
	}
	return time.Until(start.Add(o.wait + extra))
}

// acquire waits for the lock, also while ZooKeeper cannot be reached. If it fails, the end of the
// session takes the request out of the queue.
func acquire(o *options, start time.Time, locks *actors.Locks, signals <-chan os.Signal) (*actors.Grant, int, error) {
	ctx := context.Background()
	if !o.forever { // in case a server stays connected but does not answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.left(start, answerSlack))
		defer cancel()
	}
	if code, err := o.waitsForItself(ctx, locks); err != nil {
		return nil, code, err
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
	var away time.Time // since when ZooKeeper cannot be reached; zero if it can be
	reminder := time.NewTicker(o.outageLimit())
	defer reminder.Stop()
	for {
		select {
		case <-pending.Done():
			grant, err := pending.Result()
			code := acquireCode(err)
			if code == exitNotAcquired {
				err = o.withHolders(err, start, locks)
			}
			return grant, code, err
		case s := <-signals:
			return nil, bySignal + number(s), fmt.Errorf("%v while waiting for the lock", s)
		case s := <-sessions:
			switch {
			case s.State == messages.SessionState_CONNECTED:
				away = time.Time{}
			case away.IsZero():
				away = time.Now()
				reminder.Reset(o.outageLimit())
			}
		case <-reminder.C:
			if !away.IsZero() {
				warn("waits for %s, and for %s, which cannot be reached for %v", o.path, o.Place(), time.Since(away).Round(time.Second))
			}
		}
	}
}

// request returns the options of the request. They limit it to the rest of -wait: one try if
// nothing is left. Its owner is named after the command, so that other clients see it.
func (o *options) request(start time.Time) []actors.Option {
	all := []actors.Option{actors.WithOwner(actors.Owner(o.owner()))}
	if o.data != "" {
		all = append(all, actors.WithData(o.record()))
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

// owner returns the name by which other clients see the command.
func (o *options) owner() string { return filepath.Base(o.command[0]) }

func acquireCode(err error) int {
	switch {
	case errors.Is(err, actors.ErrInvalid):
		return exitUsage
	case errors.Is(err, actors.ErrNotAcquired), errors.Is(err, actors.ErrTimedOut):
		return exitNotAcquired
	}
	return exitUnavailable // also for a try without an answer
}

// record returns -data beside the record that the node of a request without data has, in the same
// form, so that clients see both. Data that are not UTF-8 cannot be a part of it, and stand alone.
func (o *options) record() []byte {
	if !utf8.ValidString(o.data) {
		return []byte(o.data)
	}
	host, _ := os.Hostname() // an unknown name is left out
	record, _ := json.Marshal(struct {
		Host    string `json:"host,omitempty"`
		PID     int    `json:"pid"`
		Program string `json:"program"`
		Owner   string `json:"owner"`
		Data    string `json:"data"`
	}{host, os.Getpid(), filepath.Base(os.Args[0]), o.owner(), o.data}) // of texts and a number: it cannot fail
	return record
}

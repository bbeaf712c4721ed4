package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// exit is the cause of the end of a lockrun with -partitions.
type exit struct {
	code   int
	err    error
	signal os.Signal // that has ended lockrun; nil if none has
}

func (e *exit) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

// workers runs a command for each partition that lockrun leads.
type workers struct {
	o       *options
	program string
	locks   *actors.Locks
	leave   context.CancelCauseFunc // with an exit; the first one counts

	mu      sync.Mutex
	running map[*group]bool
}

// runPartitions is run with -partitions: it leads partitions until a signal or a final error ends it.
func runPartitions(o *options, program string, locks *actors.Locks, signals <-chan os.Signal) (int, error) {
	ctx, leave := context.WithCancelCause(context.Background())
	defer leave(nil)
	w := &workers{o: o, program: program, locks: locks, leave: leave, running: map[*group]bool{}}
	if os.Getpid() == 1 {
		go reapZombies()
	}
	joined := make(chan error, 1)
	go func() { joined <- locks.Partitions(o.path, o.partitions).Join(ctx, o.record(), w.lead) }()
	for {
		select {
		case s := <-signals:
			if ctx.Err() != nil {
				w.forward(s) // the first one was for all commands, too: see giveAway
			}
			leave(&exit{bySignal + number(s), nil, s})
		case err := <-joined:
			var cause *exit
			switch {
			case errors.As(context.Cause(ctx), &cause):
				return cause.code, cause.err
			case errors.Is(err, actors.ErrInvalid):
				return exitUsage, err
			}
			return exitUnavailable, err
		}
	}
}

// forward sends a signal to all commands.
func (w *workers) forward(s os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.running {
		g.forward(s)
	}
}

// lead runs the command of a term. The partition is given away when lead returns, and so not before the
// command has ended.
func (w *workers) lead(term *actors.PartitionTerm) {
	n, led := term.Partition(), time.Now()
	w.o.printVerbose("leads partition %d, token %v", n, term.Token())
	g, err := startOneOfMany(w.command(term))
	if err != nil {
		code, err := notStarted(err)
		w.leave(&exit{code: code, err: err})
		return
	}
	w.put(g, true)
	defer w.put(g, false)
	defer g.looks.Wait() // they may warn
	defer g.stopGuard()
	g.looks.Go(g.keepLooking)
	for over := false; !over; {
		select {
		case s := <-g.stops:
			g.onStopWithoutTerminal(s)
		case <-term.Context().Done():
			over = true
		case <-g.ended:
			warn("the command of partition %d has ended after %v, %s: it begins again after a pause, here or elsewhere", n, since(led), endOf(g.code))
			over = true // other processes of its group may still run
		}
	}
	if err := w.giveAway(term, g); err != nil {
		w.leave(&exit{code: exitNotStopped, err: fmt.Errorf("partition %d was lost after %v: %w", n, since(led), err)})
		return
	}
	w.o.printVerbose("has given partition %d away after %v", n, since(led))
}

func (w *workers) put(g *group, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if runs {
		w.running[g] = true
	} else {
		delete(w.running, g)
	}
}

// command returns the command of a term. It has no standard input, which many commands cannot share.
func (w *workers) command(term *actors.PartitionTerm) *exec.Cmd {
	number := strconv.Itoa(term.Partition())
	cmd := exec.Command(w.program)
	cmd.Args[0] = w.o.command[0]
	for _, argument := range w.o.command[1:] {
		cmd.Args = append(cmd.Args, strings.ReplaceAll(argument, "{}", number))
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "ACTORLOCK_PARTITION="+number,
		"ACTORLOCK_TOKEN="+term.Token().String(), "ACTORLOCK_PATH="+path.Dir(term.Node()), "ACTORLOCK_NODE="+term.Node(),
		heldVariable+"="+strings.Join(append(heldAround(), path.Base(term.Node())), " "))
	return cmd
}

// giveAway ends the command's group: with SIGTERM or the signal that has ended lockrun, and SIGKILL after
// -grace. After a loss it has the time that the command of a lost lock has. The error is that lockrun could
// not stop a process of the group after a loss; until a loss the partition stays here while one runs.
func (w *workers) giveAway(term *actors.PartitionTerm, g *group) error {
	if w.isLost(term) {
		return w.stopLost(term, g)
	}
	if g.alive() {
		if s := endedBy(term.Err()); s != nil {
			g.forward(s)
		} else {
			g.warnUnless(g.terminate(), func(err error) {
				warn("the command of partition %d, which is to move, may not be signalled, and keeps it until it ends by itself: %v", term.Partition(), err)
			})
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	graceOver := time.After(w.o.grace)
	for g.alive() {
		select {
		case <-graceOver:
			warn("the command of partition %d has not ended %v after the signal, and is killed", term.Partition(), w.o.grace)
			g.kill()
		case <-tick.C:
			if w.isLost(term) {
				return w.stopLost(term, g)
			}
		}
	}
	<-g.ended
	return nil
}

// stopLost stops the command of a term that is lost.
func (w *workers) stopLost(term *actors.PartitionTerm, g *group) error {
	lost := time.Now()
	why := term.Err()
	if !isLoss(why) { // the term was to end before
		why = actors.ErrSessionLost
	}
	if err := g.stop(w.o.killAfter(why, term.Session(), w.locks)); err != nil {
		return fmt.Errorf("%w; %w", why, g.notStopped(lost, err))
	}
	warn("partition %d was lost, and its command was stopped: %v", term.Partition(), plain(why))
	return nil
}

// isLost reports whether the term's lock is not this process's any more, also after its context has ended
// for another reason.
func (w *workers) isLost(term *actors.PartitionTerm) bool {
	s := w.locks.Session()
	return isLoss(term.Err()) || s.ID != term.Session() || !time.Now().Before(s.Deadline)
}

// isLoss reports whether the error of a term is a loss of its lock, and not a reason to give it away.
func isLoss(err error) bool {
	var ends *exit
	return err != nil && !errors.Is(err, actors.ErrResigned) && !errors.Is(err, actors.ErrRevoked) && !errors.As(err, &ends)
}

// endOf returns for people the end that wait has put into code.
func endOf(code int) string {
	if code > bySignal {
		return fmt.Sprintf("by signal %d", code-bySignal)
	}
	return fmt.Sprintf("with exit code %d", code)
}

// endedBy returns the signal that has ended lockrun, if that is why a term ends.
func endedBy(err error) os.Signal {
	var cause *exit
	if errors.As(err, &cause) {
		return cause.signal
	}
	return nil
}

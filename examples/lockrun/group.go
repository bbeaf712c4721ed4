package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// group is a command that runs in a process group of its own.
type group struct {
	cmd          *exec.Cmd
	ended        chan struct{}  // closed when the command has ended; other processes of its group may still run
	code         int            // exit code, once ended is closed
	stops        chan os.Signal // each signal that has stopped the command
	writeToGuard func(line any) // writes to the process of startGuard
	stopGuard    func()         // ends that process
	terminal                    // the terminal from which the command may read
}

// start starts the command in a thread of its own, which stays until the command has ended. On
// Linux the kernel kills the command when that thread ends, and so when lockrun is killed.
func start(cmd *exec.Cmd) (*group, error) {
	g := &group{cmd: cmd, ended: make(chan struct{}), stops: make(chan os.Signal, 1), writeToGuard: func(any) {}, stopGuard: func() {}}
	setProcessGroup(cmd)
	if err := g.startGuard(); err != nil {
		warn("the command may outlive a lockrun that is killed: %v", err)
	}
	started := make(chan error)
	go func() {
		defer close(g.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err != nil {
			started <- err
			return
		}
		g.writeToGuard(cmd.Process.Pid)
		started <- nil
		g.wait()
	}()
	if err := <-started; err != nil {
		g.stopGuard()
		return nil, err
	}
	return g, nil
}

// endLimit is how long processes that were killed may take to end.
const endLimit = 2 * time.Second

// stop sends SIGTERM to the group, and SIGKILL after the grace. It waits for the command, also for one
// that it cannot stop. The error is that lockrun could not stop a process of the group.
func (g *group) stop(grace time.Duration) error {
	defer func() { <-g.ended }()
	blocked := g.blocked()
	if err := g.terminate(); err != nil {
		warn("the lock is lost, and the command, which may not be signalled, goes on beside the next holder unless it ends by itself: %v", err)
	}
	graceOver := time.After(grace)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.alive() {
		select {
		case <-tick.C:
		case <-graceOver:
			err := g.killAll()
			if err != nil {
				warn("the lock is lost, and the command goes on beside the next holder: %v", err)
			}
			return err
		}
	}
	return blocked
}

// killAll kills the group. The error is that a process of it runs after endLimit.
func (g *group) killAll() error {
	err := g.kill()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(endLimit); g.runs(); {
		select {
		case <-tick.C:
		case <-over:
			return cmp.Or(err, g.outOfReach(), errors.New("it runs after the signal KILL"))
		}
	}
	return nil
}

// notStopped returns the error for a command that ran on after the loss.
func (g *group) notStopped(lost time.Time, err error) error {
	now := "a process of it still runs"
	if !g.runs() {
		now = fmt.Sprintf("it ended by itself, %v after the loss at the latest", since(lost))
	}
	return fmt.Errorf("lockrun could not stop the command: %w; %s", err, now)
}

// notStarted returns the exit code that shells have for a command that could not be started.
func notStarted(err error) (int, error) {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound, err
	}
	return exitNotExecutable, err
}

package main

import (
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
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the command has ended; others of its group may run on
	dismiss func()        // ends the process that watches over the group
}

// start starts the command. Its thread stays until the command has ended: on Linux the
// kernel kills the command when that thread ends, which is how it dies with lockrun.
func start(cmd *exec.Cmd) (*group, error) {
	g := &group{cmd: cmd, ended: make(chan struct{}), dismiss: func() {}}
	isolate(cmd)
	started := make(chan error)
	go func() {
		defer close(g.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // ProcessState says all
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := g.watchOver(); err != nil {
		fmt.Fprintln(os.Stderr, "lockrun: the command may outlive a lockrun that is killed:", err)
	}
	return g, nil
}

// stop ends the whole group: it asks, and after the grace it kills.
func (g *group) stop(grace time.Duration) {
	defer func() { <-g.ended }()
	g.terminate()
	over := time.After(grace)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.alive() {
		select {
		case <-tick.C:
		case <-over:
			g.kill()
			return
		}
	}
}

// notRun gives the shell's exit code for a command that could not be started.
func notRun(err error) (int, error) {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound, err
	}
	return exitNotExecutable, err
}

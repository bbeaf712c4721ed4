package main

import (
	"errors"
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

// stop sends SIGTERM to the group, and SIGKILL after the grace. It waits for the command.
func (g *group) stop(grace time.Duration) {
	defer func() { <-g.ended }()
	g.terminate()
	graceOver := time.After(grace)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.alive() {
		select {
		case <-tick.C:
		case <-graceOver:
			g.kill()
			return
		}
	}
}

// notStarted returns the exit code that shells have for a command that could not be started.
func notStarted(err error) (int, error) {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound, err
	}
	return exitNotExecutable, err
}

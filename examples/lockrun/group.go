package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// group is a command that runs in a process group of its own.
type group struct {
	cmd          *exec.Cmd
	oneOfMany    bool           // other commands of this lockrun may run
	ended        chan struct{}  // closed when the command has ended; other processes of its group may still run
	code         int            // exit code, once ended is closed
	stops        chan os.Signal // each signal that has stopped the command
	writeToGuard func(line any) // writes to the process of startGuard
	stopGuard    func()         // ends that process
	processes    func(group int) (all []groupMember, known bool)
	looks        sync.WaitGroup // looks at the processes, which take long on a busy machine: no signal waits for them
	terminal                    // the terminal from which the command may read
}

// groupMember is a process of a group.
type groupMember struct {
	id   int
	name string
}

// start starts the command in a thread of its own, which stays until the command has ended. On
// Linux the kernel kills the command when that thread ends, and so when lockrun is killed.
func start(cmd *exec.Cmd) (*group, error) { return startGroup(&group{cmd: cmd}) }

// startOneOfMany is start for a lockrun with several commands.
func startOneOfMany(cmd *exec.Cmd) (*group, error) {
	return startGroup(&group{cmd: cmd, oneOfMany: true})
}

func startGroup(g *group) (*group, error) {
	cmd := g.cmd
	g.ended, g.stops = make(chan struct{}), make(chan os.Signal, 1)
	g.writeToGuard, g.stopGuard, g.processes = func(any) {}, func() {}, running
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
	graceOver := time.After(grace)
	blocked := g.blocked()
	g.warnUnless(g.terminate(), func(err error) {
		warn("the lock is lost, and the command, which may not be signalled, goes on beside the next holder unless it ends by itself: %v", err)
	})
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

// warnUnless warns of the error of a signal, or else if lockrun finds a process of the group that it may not
// signal. It does not block.
func (g *group) warnUnless(failed error, warn func(error)) {
	if failed != nil {
		warn(failed)
		return
	}
	g.looks.Go(func() {
		if err := g.outOfReach(); err != nil {
			warn(err)
		}
	})
}

// keepLooking looks at the processes of the group after firstLook, and then less and less often, until the
// command ends or is out of reach: most commands that become another user do so at once.
func (g *group) keepLooking() {
	for pause := firstLook; ; pause = min(2*pause, time.Minute) {
		select {
		case <-g.ended:
			return
		case <-time.After(pause):
		}
		if err := g.outOfReach(); err != nil {
			warn("lockrun could not stop the command if the lock were lost: %v; %s", err, sudoFirst)
			return
		}
	}
}

// firstLook is when lockrun looks first at the processes of the command's group.
const firstLook = 500 * time.Millisecond

// killAll kills the group. The error is that a process of it runs after endLimit.
func (g *group) killAll() error {
	err := g.kill()
	pause := 5 * time.Millisecond
	for over := time.After(endLimit); g.runs(); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
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

package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childProcess is a program that bench has started, and the goroutine that waits for it.
type childProcess struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and Wait has returned
}

// spawn starts the command. The kernel kills the child when this process ends, in any way. The goroutine that starts it keeps
// its thread until the child has ended, because the kernel sends the signal when the starting thread ends.
func spawn(cmd *exec.Cmd) (*childProcess, error) {
	p := &childProcess{cmd, make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // only the end matters
		}
	}()
	return p, <-started
}

func (p *childProcess) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill kills the process, and waits for its end.
func (p *childProcess) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}

// waitOrKill waits for the end of the process, and kills it after the grace.
func (p *childProcess) waitOrKill(grace time.Duration) {
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
	}
}

// endWithGoCommand returns a context that ends when the parent process is the go command and has ended: a killed go command
// does not forward the signal. It polls the parent's id. A death signal would come when the thread ends that started this
// process, which the go command, unlike spawn, does not keep.
func endWithGoCommand(ctx context.Context) context.Context {
	parent := os.Getppid()
	name, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/comm")
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for os.Getppid() == parent {
			time.Sleep(200 * time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

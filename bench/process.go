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

// process is a child process and the goroutine that waits for it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and has been waited for
}

// spawn starts the command; the kernel kills the child when we end, however we end. The goroutine that started it
// keeps its thread until the child has ended, because the death signal is sent when the starting thread ends.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd, make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its end is what counts
		}
	}()
	return p, <-started
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}

// waitOrKill gives the process some time to end by itself.
func (p *process) waitOrKill(patience time.Duration) {
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
	}
}

// endWithGoCommand ends the context when our parent is the go command, and ends: killed, it cannot tell us. We look now
// and then who our parent is: a death signal comes when the thread ends that started us, and in the go command, unlike in
// spawn, nothing keeps that.
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

//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// forwarded are the signals that the command gets if lockrun does.
func forwarded() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // else nohup has said so
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// catch begins to catch these signals. It also keeps a terminal from stopping lockrun,
// which could not watch over the lock while the command goes on.
func catch() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	return signals
}

func number(s os.Signal) int { return int(s.(syscall.Signal)) }

func exitCode(p *os.ProcessState) int {
	if status := p.Sys().(syscall.WaitStatus); status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return p.ExitCode()
}

func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(cmd.SysProcAttr)
}

func (g *group) signal(s os.Signal) {
	syscall.Kill(-g.cmd.Process.Pid, s.(syscall.Signal))
	syscall.Kill(-g.cmd.Process.Pid, syscall.SIGCONT) // or a stopped process would not hear of it
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }

func (g *group) kill() { syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) }

func (g *group) alive() bool {
	return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH)
}

// watch kills the group that it is told unless it hears that all is over before its
// standard input ends.
const watch = `read -r group && { read -r over || kill -s KILL -- "-$group"; }`

// watchOver starts a process that outlives lockrun, to kill the group if lockrun is
// killed. The kernel would only kill the command itself, and only on Linux.
func (g *group) watchOver() error {
	guard := exec.Command("/bin/sh", "-c", watch)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not to be killed with lockrun
	tell, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return err
	}
	fmt.Fprintln(tell, g.cmd.Process.Pid)
	g.dismiss = func() {
		fmt.Fprintln(tell, "over")
		guard.Wait()
	}
	return nil
}

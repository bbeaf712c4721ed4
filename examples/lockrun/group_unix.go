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

// forwarded returns the signals that lockrun forwards to the command.
func forwarded() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// catchSignals begins to catch these signals. It also prevents a terminal from stopping lockrun,
// because a stopped lockrun could not react to the loss of the lock.
func catchSignals() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	return signals
}

func number(s os.Signal) int { return int(s.(syscall.Signal)) }

// signals are the values of -on-revoke.
var signals = map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// wait blocks until the command has ended. os/exec would not report that a signal has stopped the
// command.
func (g *group) wait() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(g.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no such child: the system does not know its exit status any more
			g.code = exitUnavailable
			return
		case status.Stopped():
			select {
			case g.stops <- status.StopSignal():
			default: // an earlier signal is not handled yet, after which the command goes on
			}
		case status.Signaled():
			g.code = exitSignal + int(status.Signal())
			return
		default:
			g.code = status.ExitStatus()
			return
		}
	}
}

func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(cmd.SysProcAttr)
}

func (g *group) signal(s os.Signal) {
	syscall.Kill(-g.cmd.Process.Pid, s.(syscall.Signal))
	syscall.Kill(-g.cmd.Process.Pid, syscall.SIGCONT) // a stopped process handles s only after SIGCONT
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }

func (g *group) kill() { syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) }

func (g *group) alive() bool {
	return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH)
}

// guardScript reads the group's id, and kills the group when its standard input ends without a
// second line.
const guardScript = `read -r group && { read -r over || kill -s KILL -- "-$group"; }`

// startGuard starts a process that outlives lockrun, and kills the group that writeToGuard names if
// lockrun is killed. The kernel would only kill the command itself, and only on Linux. The guard is
// started before the command, since it takes some time.
func (g *group) startGuard() error {
	guard := exec.Command("/bin/sh", "-c", guardScript)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to lockrun's group does not kill it
	input, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return err
	}
	g.writeToGuard = func(line any) { fmt.Fprintln(input, line) }
	g.stopGuard = func() {
		g.writeToGuard("over\nover") // one line for the group, if the guard has read none
		guard.Wait()
	}
	return nil
}

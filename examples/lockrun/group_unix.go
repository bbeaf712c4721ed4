//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// forwarded returns the signals that lockrun forwards to the command: none that lockrun ignores, as the
// command does then.
func forwarded() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP}
	return slices.DeleteFunc(all, signal.Ignored)
}

// catchSignals begins to catch these signals. It also prevents a terminal from stopping lockrun,
// because a stopped lockrun could not react to the loss of the lock.
func catchSignals() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	for _, s := range ignoredAtStart() {
		signal.Ignore(s) // the command inherits it
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	return signals
}

func number(s os.Signal) int { return int(s.(syscall.Signal)) }

// signals are the values of -on-revoke.
var signals = map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// wait blocks until the command has ended. os/exec would not report that a signal has stopped the
// command. As process 1 lockrun is the parent of all processes that lose theirs, and takes note of
// their ends.
func (g *group) wait() {
	child := g.cmd.Process.Pid
	if os.Getpid() == 1 && !g.oneOfMany {
		child = -1
		defer func() { go reap() }()
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(child, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no such child: the system does not know its exit status any more
			g.code = exitUnavailable
			return
		case ended != g.cmd.Process.Pid:
		case status.Stopped():
			select {
			case g.stops <- status.StopSignal():
			default: // an earlier signal is not handled yet, after which the command goes on
			}
		case status.Signaled():
			g.code = bySignal + int(status.Signal())
			return
		default:
			g.code = status.ExitStatus()
			return
		}
	}
}

// reap takes note of the ends of all child processes.
func reap() {
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// reapZombies takes note of the ends of child processes that no wait takes note of. As process 1 lockrun gets
// those that lose their parent. It is for many commands, of which each waits for its own end.
func reapZombies() {
	seen := map[int]bool{}
	for range time.Tick(time.Second) {
		still := map[int]bool{}
		for _, id := range zombies(os.Getpid()) {
			if still[id] = true; seen[id] { // the wait of a command takes less than a second
				syscall.Wait4(id, nil, syscall.WNOHANG, nil)
			}
		}
		seen = still
	}
}

func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(cmd.SysProcAttr)
}

// signal sends a signal to all processes of the group. The error is that none of them gets it.
func (g *group) signal(s os.Signal) error {
	err := g.send(s.(syscall.Signal))
	g.send(syscall.SIGCONT) // a stopped process handles s only after SIGCONT; that it fails as s does, is said of s
	return err
}

// send returns nil if a process of the group gets the signal, and if no process is left.
func (g *group) send(s syscall.Signal) error {
	err := syscall.Kill(-g.cmd.Process.Pid, s)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("process group %d: %w", g.cmd.Process.Pid, err)
}

// blocked returns an error if lockrun may signal no process of the group.
func (g *group) blocked() error { return g.send(0) }

func (g *group) terminate() error { return g.signal(syscall.SIGTERM) }

func (g *group) kill() error { return g.send(syscall.SIGKILL) }

// alive reports whether the group has a process, also if that has ended and its parent has not taken note.
func (g *group) alive() bool {
	return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH)
}

// runs reports whether a process of the group may still run.
func (g *group) runs() bool {
	if !g.alive() {
		return false
	}
	running, known := g.processes(g.cmd.Process.Pid)
	return len(running) > 0 || !known || g.send(0) != nil
}

// outOfReach returns an error if lockrun finds a process of the group that it may not signal.
func (g *group) outOfReach() error {
	if err := g.send(0); err != nil {
		return err
	}
	processes, _ := g.processes(g.cmd.Process.Pid)
	for _, p := range processes {
		if err := syscall.Kill(p.id, 0); errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("process %d, %s: %w", p.id, p.name, err)
		}
	}
	return nil
}

// mayChangeUser reports whether a program's file makes it run as a user whose processes lockrun may not
// signal.
func mayChangeUser(program string) bool {
	info, err := os.Stat(program)
	if err != nil || info.Mode()&os.ModeSetuid == 0 {
		return false
	}
	status, is := info.Sys().(*syscall.Stat_t)
	return is && os.Geteuid() != 0 && int(status.Uid) != os.Geteuid()
}

// endBySignal ends the process by a signal, whose default action Go's runtime replaces for most. It
// returns if the signal does not end the process, as for process 1.
func endBySignal(number int) {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // the command has left its own core; without the limit there are two
	script := fmt.Sprintf("kill -%d $$; exit %d", number, exitSignal+number)
	syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ()) // fails without a shell: the exit code says it, too
}

// guardScript reads the group's id, and kills the group when its standard input ends without a
// second line. It says when it may not.
const guardScript = `read -r group && { read -r over || said=$(kill -s KILL -- "-$group" 2>&1) || case $said in
	*ermitted*) echo "lockrun: lockrun was killed, and its command goes on without the lock: process group $group may not be signalled" >&2 ;;
esac; }`

// startGuard starts a process that outlives lockrun, and kills the group that writeToGuard names if
// lockrun is killed. The kernel would only kill the command itself, and only on Linux. The guard is
// started before the command, since it takes some time.
func (g *group) startGuard() error {
	guard := exec.Command("/bin/sh", "-c", guardScript)
	guard.Env, guard.Stderr = append(os.Environ(), "LC_ALL=C"), os.Stderr
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

//go:build linux || darwin || freebsd || netbsd

package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// terminal is the controlling terminal. The command starts in its background. The system stops the
// command when it reads from the terminal. Then lockrun puts the command's group into the
// foreground. A command that does not read leaves the terminal to other programs, such as the pager
// of a pipeline.
type terminal struct {
	tty     *os.File // nil before the command reads from it
	moved   bool     // lockrun has put the command's group into the foreground instead of its own
	waiting bool     // the command is stopped, and lockrun itself is in the background
}

// catchContinue returns a channel that receives when lockrun is continued, as by the shell's fg. It
// also prevents the terminal from stopping lockrun when lockrun writes from the background. The
// command must have been started before, because it would inherit that.
func catchContinue() <-chan os.Signal {
	signal.Ignore(syscall.SIGTTOU)
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	return continued
}

// onStop continues a command that a signal of the terminal has stopped, because a stopped command
// would keep the lock. lockrun cannot stop together with the command, so that the shell would not
// get the terminal either.
func (g *group) onStop(s os.Signal) {
	switch s {
	case syscall.SIGTSTP:
		g.forward(syscall.SIGCONT)
	case syscall.SIGTTIN, syscall.SIGTTOU:
		if g.waiting = !g.takeTerminal(); g.waiting {
			warn("the command holds the lock but is stopped, since it needs the terminal: bring lockrun to the foreground (fg)")
			return
		}
		g.forward(syscall.SIGCONT)
	}
}

// onStopWithoutTerminal is onStop for one of several commands, of which none gets the terminal.
func (g *group) onStopWithoutTerminal(s os.Signal) {
	if s == syscall.SIGTTIN || s == syscall.SIGTTOU {
		warn("process group %d holds its partition but is stopped, since it needs the terminal: with -partitions no command gets it", g.cmd.Process.Pid)
		return
	}
	g.onStop(s)
}

func (g *group) onContinue() {
	if g.waiting && g.takeTerminal() {
		g.waiting = false
		g.forward(syscall.SIGCONT)
	}
}

// takeTerminal moves the terminal's foreground from lockrun's group to the command's. It reports
// whether the command's group has the foreground.
func (g *group) takeTerminal() bool {
	if g.tty == nil {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return false
		}
		g.tty = tty
	}
	switch foreground(g.tty) {
	case g.cmd.Process.Pid:
		return true
	case syscall.Getpgrp():
		g.moved = setForeground(g.tty, g.cmd.Process.Pid)
		return g.moved
	}
	return false
}

// returnTerminal puts lockrun's group into the foreground again if it was there before.
func (g *group) returnTerminal() {
	if g.moved {
		setForeground(g.tty, syscall.Getpgrp())
	}
	if g.tty != nil {
		g.tty.Close()
	}
}

// endTerminalJob sends lockrun's group the signal by which the terminal has ended the command. The
// terminal has sent it to the command's group in place of lockrun's, which may have the shell of a
// script, too.
func (g *group) endTerminalJob() {
	if s := syscall.Signal(g.code - bySignal); g.moved && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
		if err := syscall.Kill(0, s); err != nil {
			warn("the signal %q does not get to lockrun's own process group: %v", s, err)
		}
	}
}

// foreground returns the process group in the terminal's foreground, or 0.
func foreground(tty *os.File) int {
	var group int32
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group))); failed != 0 {
		return 0
	}
	return int(group)
}

// setForeground reports whether it has put a process group into the terminal's foreground.
func setForeground(tty *os.File, process int) bool {
	group := int32(process)
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&group)))
	return failed == 0
}

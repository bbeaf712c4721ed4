package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// dieWithParent has the kernel kill the child when this process ends, in any way.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Freeze stops all threads of the process, and returns when they have stopped. It works on Linux
// only.
func (p *Process) Freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if !poll(TimeLimit, p.done, p.isStopped) {
		return errors.New("it still runs after SIGSTOP")
	}
	return nil
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// isStopped reports whether every thread is in the state T, stopped.
func (p *Process) isStopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended since
		}
		// The state follows the name, which is in brackets and may contain brackets.
		if i := strings.LastIndex(string(stat), ") "); i < 0 || !strings.HasPrefix(string(stat)[i+2:], "T") {
			return false
		}
	}
	return len(threads) > 0
}

// reserve binds a socket to the loopback port and does not listen. It reports whether no other
// socket has the port. Until free closes the socket, the kernel refuses the port to the next call
// of reserve and to outgoing connections. It grants the port to a server that sets SO_REUSEADDR, as
// all do: sockets with this option can share a port while only one of them listens.
func reserve(port int) (free func(), ok bool) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	free = func() { syscall.Close(fd) }
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // before Bind it would allow other sockets, too
	}
	if err != nil {
		free()
		return nil, false
	}
	return free, true
}

// writeToGo writes a line to the standard error of the go command that runs this test binary,
// because the go command does not show the output of a package that passes. It reports whether it
// has written: the parent must be the go command, and its standard error a terminal, a device or a
// pipe. The go command would overwrite the line in a file.
func writeToGo(line string) bool {
	parent := fmt.Sprintf("/proc/%d", os.Getppid())
	if comm, err := os.ReadFile(parent + "/comm"); err != nil || string(comm) != "go\n" {
		return false
	}
	info, err := os.Stat(parent + "/fd/2")
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return false
	}
	// Package os would record the file as an input of the test. O_NONBLOCK avoids a wait for a
	// reader.
	fd, err := syscall.Open(parent+"/fd/2", syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	n, err := syscall.Write(fd, []byte(line+"\n"))
	return err == nil && n == len(line)+1
}

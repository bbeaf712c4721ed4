//go:build !linux

package zktest

import (
	"errors"
	"net"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

var errLinuxOnly = errors.New("works on Linux only")

// Freeze works on Linux only: here it returns an error.
func (p *Process) Freeze() error { return errLinuxOnly }
func (p *Process) Thaw() error   { return errLinuxOnly }

// reserve reports whether no other process listens on the loopback port. It does not keep the port,
// except on Linux.
func reserve(port int) (free func(), ok bool) {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, false
	}
	l.Close()
	return func() {}, true
}

func writeToGo(string) bool { return false }

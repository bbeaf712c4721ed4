//go:build !linux

package zktest

import (
	"errors"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

var errLinuxOnly = errors.New("works on Linux only")

// Freeze works on Linux only: here it returns an error.
func (p *Process) Freeze() error { return errLinuxOnly }
func (p *Process) Thaw() error   { return errLinuxOnly }

func writeToGo(string) bool { return false }

//go:build !linux

package zktest

import (
	"errors"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

var errLinuxOnly = errors.New("works on Linux only")

func (p *process) freeze() error { return errLinuxOnly }
func (p *process) thaw() error   { return errLinuxOnly }

func tellGo(string) bool { return false }

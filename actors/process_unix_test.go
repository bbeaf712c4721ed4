//go:build unix

package actors_test

import (
	"os/exec"
	"syscall"
)

// aside puts the process into a group of its own: so it ends with this one even while it
// is stopped, since a stopped group that nobody is left to wake up is hung up.
func aside(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

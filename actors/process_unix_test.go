//go:build unix

package actors_test

import (
	"os/exec"
	"syscall"
)

// aside puts the process into a group of its own. So it ends with this process even while it is
// stopped: the system hangs up a stopped group that no process is left to continue.
func aside(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

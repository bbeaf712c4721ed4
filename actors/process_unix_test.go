//go:build unix

package actors_test

import (
	"os/exec"
	"syscall"
)

// setProcessGroup puts the process into a process group of its own. A process that is paused when
// this process ends then ends as well: the system sends SIGHUP to a stopped group without a parent.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

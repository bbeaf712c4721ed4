//go:build unix

package locktest

import (
	"os/exec"
	"syscall"
)

// setProcessGroup puts the process into a process group of its own. A process that is paused when
// this process ends then ends as well: the system sends SIGHUP to a stopped group without a parent.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *ChildProcess) signal(s syscall.Signal) {
	p.t.Helper()
	Must(p.t, p.Cmd.Process.Signal(s))
}

// Kill ends the process at once.
func (p *ChildProcess) Kill() { p.signal(syscall.SIGKILL) }

// Pause stops the process until Resume.
func (p *ChildProcess) Pause() { p.signal(syscall.SIGSTOP) }

// Resume has a paused process go on.
func (p *ChildProcess) Resume() { p.signal(syscall.SIGCONT) }

//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// consumerFlag is the flag that makes the program a consumer.
const consumerFlag = "consumer"

// consumerProcess is a consumer: this program with consumerFlag.
type consumerProcess struct {
	cmd *exec.Cmd
	in  io.Closer // the consumer ends when it is closed
}

// start starts a consumer, and kills it when ctx ends.
func start(ctx context.Context, c consumer) (*consumerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-"+consumerFlag, c.name, "-zk", c.servers, "-session", c.session.String(), "-path", c.path,
		"-shards", strconv.Itoa(c.shards), "-table", c.table)
	cmd.Stderr = os.Stderr
	// In a group of its own it ends with this process even while it is paused: the kernel
	// sends SIGHUP to an orphaned process group that is stopped.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &consumerProcess{cmd, in}, cmd.Start()
}

func (p *consumerProcess) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the consumer if it still runs.
func (p *consumerProcess) kill() {
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

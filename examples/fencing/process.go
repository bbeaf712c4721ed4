//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// holderFlag is the flag that makes the program the holder.
const holderFlag = "holder"

// holderProcess is the holder: this program with holderFlag.
type holderProcess struct {
	ctx   context.Context
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts the holder, and kills it when ctx ends.
func start(ctx context.Context, servers string, session time.Duration, path string) (*holderProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-"+holderFlag, path, "-zk", servers, "-session", session.String())
	cmd.Stderr = os.Stderr
	// In a group of its own it ends with this process even while it is paused: the kernel
	// sends SIGHUP to an orphaned process group that is stopped.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &holderProcess{ctx, cmd, in, bufio.NewScanner(out)}, cmd.Start()
}

func (p *holderProcess) pid() int { return p.cmd.Process.Pid }

func (p *holderProcess) line() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	if err := context.Cause(p.ctx); err != nil {
		return "", err
	}
	return "", fmt.Errorf("process %d has ended early", p.pid())
}

// grant reads the first line of output: the token and the node of the grant.
func (p *holderProcess) grant() (token actors.Token, node string, err error) {
	line, err := p.line()
	if err != nil {
		return token, "", err
	}
	text, node, _ := strings.Cut(line, " ")
	token, err = actors.ParseToken(text)
	return token, node, err
}

// forward copies the next lines of output.
func (p *holderProcess) forward(out io.Writer, lines int) error {
	for range lines {
		line, err := p.line()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, " ", line)
	}
	return nil
}

// signal pauses or resumes the holder.
func (p *holderProcess) signal(s syscall.Signal) error {
	if s == syscall.SIGCONT {
		if _, err := fmt.Fprintln(p.in, "go on"); err != nil {
			return err
		}
	}
	return p.cmd.Process.Signal(s)
}

// awaitResume blocks the holder until it was paused and resumed.
func awaitResume() error {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

func (p *holderProcess) wait() error { return p.cmd.Wait() }

// kill ends the holder if it still runs.
func (p *holderProcess) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

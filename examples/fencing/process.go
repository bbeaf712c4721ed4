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

// holderFlag makes this program the holder.
const holderFlag = "holder"

// process is this program again, as the holder.
type process struct {
	ctx   context.Context
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts the holder. It is killed when ctx ends.
func start(ctx context.Context, servers string, session time.Duration, path string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-"+holderFlag, path, "-zk", servers, "-session", session.String())
	cmd.Stderr = os.Stderr
	// In a group of its own it dies with this process even while it is paused: a stopped
	// group that nobody is left to wake up is hung up by the kernel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{ctx, cmd, in, bufio.NewScanner(out)}, cmd.Start()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) line() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	if err := context.Cause(p.ctx); err != nil {
		return "", err
	}
	return "", fmt.Errorf("process %d has ended early", p.pid())
}

// grant is the first thing it says: the token and the node of its grant.
func (p *process) grant() (token actors.Token, node string, err error) {
	line, err := p.line()
	if err != nil {
		return token, "", err
	}
	text, node, _ := strings.Cut(line, " ")
	token, err = actors.ParseToken(text)
	return token, node, err
}

// tell passes on what it says next.
func (p *process) tell(out io.Writer, lines int) error {
	for range lines {
		line, err := p.line()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, " ", line)
	}
	return nil
}

// signal stops the holder or lets it go on.
func (p *process) signal(s syscall.Signal) error {
	if s == syscall.SIGCONT {
		if _, err := fmt.Fprintln(p.in, "go on"); err != nil {
			return err
		}
	}
	return p.cmd.Process.Signal(s)
}

// untilWoken blocks the holder until it is paused and woken up.
func untilWoken() error {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

func (p *process) wait() error { return p.cmd.Wait() }

// kill ends the holder if it still runs.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

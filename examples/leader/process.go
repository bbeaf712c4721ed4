//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// candidateProcess is a candidate in a process of its own, behind a network of its own.
type candidateProcess struct {
	id      string
	cmd     *exec.Cmd
	stdin   io.Closer
	network *network
	token   actors.Token   // of the last term; set before the process is sent to election.led
	over    chan time.Time // the times at which the candidate has reported the end of a term
	ended   chan struct{}  // closed when the process has ended
	killing sync.Once
}

// startProcess starts the candidate, which is this program with -id, and kills it when ctx ends.
func startProcess(ctx context.Context, e *election, id string) (*candidateProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n, err := newNetwork(e.servers)
	if err != nil {
		return nil, err
	}
	p := &candidateProcess{id: id, network: n, over: make(chan time.Time, 100), ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, self, "-id", id, "-child", "-zk", n.address, "-session", e.session.String(), "-path", e.path)
	p.cmd.Stderr = os.Stderr
	// In a group of its own it ends with this process even while it is paused: the kernel
	// sends SIGHUP to an orphaned process group that is stopped.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		n.close()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, text, is := strings.Cut(lines.Text(), leads); is {
				p.token, _ = actors.ParseToken(text)
				e.led <- p
			} else if strings.Contains(lines.Text(), isOver) {
				p.over <- time.Now()
			}
		}
		p.cmd.Wait() // it may have been killed
	}()
	return p, nil
}

func (p *candidateProcess) pid() int { return p.cmd.Process.Pid }

// kill ends the process, and waits for its end.
func (p *candidateProcess) kill() {
	p.killing.Do(func() {
		p.cmd.Process.Kill()
		p.stdin.Close()
		<-p.ended
		p.network.close()
	})
}

// fault is a fault of a leader.
type fault struct {
	name   string
	inject func(*candidateProcess) error
	undo   func(*candidateProcess) error // nil: a new process is started instead
	after  string
}

var faults = []fault{
	{"SIGTERM to", func(p *candidateProcess) error { return p.cmd.Process.Signal(syscall.SIGTERM) }, nil,
		"The old leader has resigned and ended. It is started again, and waits"},
	{"kill -9 of", func(p *candidateProcess) error { return p.cmd.Process.Kill() }, nil,
		"Its session had to expire first. It is started again, and waits"},
	{"A pause, by SIGSTOP, of", func(p *candidateProcess) error { return p.cmd.Process.Signal(syscall.SIGSTOP) },
		func(p *candidateProcess) error { return p.cmd.Process.Signal(syscall.SIGCONT) },
		"Its session had to expire first. It goes on, finds its term over, and waits"},
	{"The network is cut for", func(p *candidateProcess) error { p.network.cut(true); return nil },
		func(p *candidateProcess) error { p.network.cut(false); return nil },
		"Its term was over for itself before. The network is back, and it waits"},
}
